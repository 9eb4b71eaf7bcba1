"""The kubelet's allocated-resources file, `allocated_pods_state` (ALLOC-2 to ALLOC-4, ALLOC-8).

The file holds a JSON document as a text inside another one; the checksum is over that text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from numalign.kubelet_files.errors import CorruptCheckpoint
from numalign.kubelet_files.fnv import fnv1a_32
from numalign.kubelet_files.go_collection import TEXT_KEY, ListOf, MapOf, PointerTo
from numalign.kubelet_files.go_json import Json, JsonNumber, parse_json, quote_json
from numalign.kubelet_files.go_shape import TEXT, UINT64, Faults, Shape, kind_of
from numalign.kubelet_files.go_struct import Member, StructOf
from numalign.model.ids import PodUid
from numalign.model.quantity import ZERO, Quantity, QuantitySyntaxError


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimReference:
    """A claim of the pod that a container uses; `request` empty means all of it."""

    name: str
    request: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatedResources:
    """The resources section that a container or a pod was admitted with (ALLOC-5)."""

    limits: Mapping[str, Quantity] = field(default_factory=dict)
    requests: Mapping[str, Quantity] = field(default_factory=dict)
    claims: tuple[ClaimReference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAllocation:
    """What one pod was admitted with; `pod_level` None where it has no pod-level section."""

    containers: Mapping[str, AllocatedResources] = field(default_factory=dict)
    pod_level: AllocatedResources | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationCheckpoint:
    """What an allocated-resources file says. `hash_input` is as in CpuCheckpoint."""

    pods: Mapping[PodUid, PodAllocation] = field(default_factory=dict)
    hash_input: str | None = None


class QuantityText(Shape[Quantity]):
    """A resource quantity, a text or a bare number, with a decoder of its own in Go."""

    def zero(self) -> Quantity:
        """See Shape."""
        return ZERO

    def decode(self, raw: Json, current: Quantity, faults: Faults) -> Quantity:
        """See Shape."""
        if raw is None:
            return ZERO
        text = raw.text if isinstance(raw, JsonNumber) else raw
        if not isinstance(text, str):
            faults.stop(f"{kind_of(raw)} where a quantity belongs")
            return current
        try:
            return Quantity.parse(text.strip())
        except QuantitySyntaxError as error:
            faults.stop(str(error))
            return current

    def dump(self, value: Quantity) -> str:
        """See Shape."""
        return value.canonical()

    def encode(self, value: Quantity) -> str:
        """See Shape."""
        return quote_json(value.canonical())


@dataclass(frozen=True, slots=True, kw_only=True)
class _ResourcesDocument:
    limits: Mapping[str, Quantity] | None
    requests: Mapping[str, Quantity] | None
    claims: tuple[ClaimReference, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _PodDocument:
    containers: Mapping[str, _ResourcesDocument] | None
    pod_level: _ResourcesDocument | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _DataDocument:
    entries: Mapping[str, _PodDocument] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileDocument:
    data: str = ""
    checksum: int = 0


_CLAIM = StructOf(
    ClaimReference,
    (
        Member(key="name", attribute="name", shape=TEXT),
        Member(key="request", attribute="request", shape=TEXT, omit_empty=True),
    ),
)
_RESOURCE_LIST = MapOf(TEXT_KEY, QuantityText())
_RESOURCES = StructOf(
    _ResourcesDocument,
    (
        Member(key="limits", attribute="limits", shape=_RESOURCE_LIST, omit_empty=True),
        Member(key="requests", attribute="requests", shape=_RESOURCE_LIST, omit_empty=True),
        Member(key="claims", attribute="claims", shape=ListOf(_CLAIM), omit_empty=True),
    ),
)
_POD = StructOf(
    _PodDocument,
    (
        Member(key="ContainerResources", attribute="containers", shape=MapOf(TEXT_KEY, _RESOURCES)),
        Member(key="PodLevelResources", attribute="pod_level", shape=PointerTo(_RESOURCES)),
    ),
)
_DATA = StructOf(
    _DataDocument,
    (Member(key="entries", attribute="entries", shape=MapOf(TEXT_KEY, _POD), omit_empty=True),),
)
_FILE = StructOf(
    _FileDocument,
    (
        Member(key="data", attribute="data", shape=TEXT),
        Member(key="checksum", attribute="checksum", shape=UINT64),
    ),
)


def read_allocation_checkpoint(text: str) -> AllocationCheckpoint:
    """Decode and verify the text of `allocated_pods_state` (ALLOC-4, ALLOC-8).

    Raises CheckpointError with the kubelet's reason. A checksum of 0 is checked like any other.
    """
    faults = Faults()
    file = _FILE.decode(parse_json(text), _FileDocument(), faults)
    faults.check()
    hash_input = _printed(file.data)
    if file.checksum != fnv1a_32(hash_input):
        raise CorruptCheckpoint
    data = _DATA.decode(parse_json(file.data), _DataDocument(), faults)
    faults.check()
    return AllocationCheckpoint(
        pods={
            PodUid(pod): PodAllocation(
                containers={name: _resources(of) for name, of in (entry.containers or {}).items()},
                pod_level=None if entry.pod_level is None else _resources(entry.pod_level),
            )
            for pod, entry in (data.entries or {}).items()
        },
        hash_input=hash_input,
    )


def allocation_hash_input(checkpoint: AllocationCheckpoint) -> str:
    """The text that the checksum of `checkpoint` is computed over (ALLOC-4)."""
    return _printed(_data_text(checkpoint))


def write_allocation_checkpoint(checkpoint: AllocationCheckpoint) -> str:
    """The text of `allocated_pods_state`, byte for byte as the kubelet writes it (ALLOC-2)."""
    data = _data_text(checkpoint)
    return _FILE.encode(_FileDocument(data=data, checksum=fnv1a_32(_printed(data))))


def _printed(data: str) -> str:
    return f"(string){data}"


def _resources(document: _ResourcesDocument) -> AllocatedResources:
    return AllocatedResources(
        limits=document.limits or {},
        requests=document.requests or {},
        claims=document.claims or (),
    )


def _data_text(checkpoint: AllocationCheckpoint) -> str:
    return _DATA.encode(
        _DataDocument(
            entries={
                pod: _PodDocument(
                    containers={name: _document(of) for name, of in entry.containers.items()},
                    pod_level=None if entry.pod_level is None else _document(entry.pod_level),
                )
                for pod, entry in checkpoint.pods.items()
            }
        )
    )


def _document(resources: AllocatedResources) -> _ResourcesDocument:
    return _ResourcesDocument(
        limits=resources.limits, requests=resources.requests, claims=resources.claims
    )
