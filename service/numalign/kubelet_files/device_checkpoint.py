"""The device manager's state file, `kubelet_internal_checkpoint` (DEV-44, DEV-46).

The kubelet never refuses to start over this file: what `CheckpointError` says, it only logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from numalign.kubelet_files.errors import CorruptCheckpoint
from numalign.kubelet_files.fnv import fnv1a_32
from numalign.kubelet_files.go_collection import INT_KEY, TEXT_KEY, ListOf, MapOf
from numalign.kubelet_files.go_json import parse_json
from numalign.kubelet_files.go_shape import BYTES, TEXT, UINT64, Faults
from numalign.kubelet_files.go_struct import Member, StructOf
from numalign.model.ids import DeviceId, PodUid

_TYPE_NAME = "(checkpoint.checkpointData)"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEntry:
    """The devices of one resource that one container holds, with the plugin's answer.

    Ids are grouped by NUMA node, -1 holding those without topology. `allocate_response` is the
    serialised ContainerAllocateResponse of the device plugin API; None where the file has null,
    which decodes like an empty answer.
    """

    pod_uid: PodUid
    container: str
    resource: str
    ids_by_node: Mapping[int, tuple[DeviceId, ...]]
    allocate_response: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCheckpoint:
    """What a device manager state file says. `registered` lists the healthy ids per resource.

    The order of entries and ids is that of the file.
    """

    entries: tuple[DeviceEntry, ...] = ()
    registered: Mapping[str, tuple[DeviceId, ...]] = field(default_factory=dict)
    hash_input: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _EntryDocument:
    pod_uid: str
    container: str
    resource: str
    device_ids: Mapping[int, tuple[str, ...] | None] | None
    alloc_resp: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _DataDocument:
    entries: tuple[_EntryDocument, ...] | None = ()
    registered: Mapping[str, tuple[str, ...] | None] | None = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Document:
    data: _DataDocument = field(default_factory=_DataDocument)
    checksum: int = 0


_ENTRY = StructOf(
    _EntryDocument,
    (
        Member(name="PodUID", kind="string", key="PodUID", attribute="pod_uid", shape=TEXT),
        Member(
            name="ContainerName",
            kind="string",
            key="ContainerName",
            attribute="container",
            shape=TEXT,
        ),
        Member(
            name="ResourceName", kind="string", key="ResourceName", attribute="resource", shape=TEXT
        ),
        Member(
            name="DeviceIDs",
            kind="checkpoint.DevicesPerNUMA",
            key="DeviceIDs",
            attribute="device_ids",
            shape=MapOf(INT_KEY, ListOf(TEXT)),
        ),
        Member(
            name="AllocResp", kind="[]uint8", key="AllocResp", attribute="alloc_resp", shape=BYTES
        ),
    ),
)
_DATA = StructOf(
    _DataDocument,
    (
        Member(
            name="PodDeviceEntries",
            kind="[]checkpoint.PodDevicesEntry",
            key="PodDeviceEntries",
            attribute="entries",
            shape=ListOf(_ENTRY),
        ),
        Member(
            name="RegisteredDevices",
            kind="map[string][]string",
            key="RegisteredDevices",
            attribute="registered",
            shape=MapOf(TEXT_KEY, ListOf(TEXT)),
        ),
    ),
)
_FILE = StructOf(
    _Document,
    (
        Member(
            name="Data", kind="checkpoint.checkpointData", key="Data", attribute="data", shape=_DATA
        ),
        Member(
            name="Checksum",
            kind="checksum.Checksum",
            key="Checksum",
            attribute="checksum",
            shape=UINT64,
        ),
    ),
)


def read_device_checkpoint(text: str) -> DeviceCheckpoint:
    """Decode and verify the text of `kubelet_internal_checkpoint` (DEV-44).

    Raises CheckpointError. A checksum of 0 is checked like any other.
    """
    faults = Faults()
    document = _FILE.decode(parse_json(text), _Document(), faults)
    faults.check()
    hash_input = _printed(document.data)
    if document.checksum != fnv1a_32(hash_input):
        raise CorruptCheckpoint
    return DeviceCheckpoint(
        entries=tuple(
            DeviceEntry(
                pod_uid=PodUid(entry.pod_uid),
                container=entry.container,
                resource=entry.resource,
                ids_by_node={node: _ids(ids) for node, ids in (entry.device_ids or {}).items()},
                allocate_response=entry.alloc_resp,
            )
            for entry in document.data.entries or ()
        ),
        registered={r: _ids(ids) for r, ids in (document.data.registered or {}).items()},
        hash_input=hash_input,
    )


def device_hash_input(checkpoint: DeviceCheckpoint) -> str:
    """The text that the checksum of `checkpoint` is computed over (DEV-44)."""
    return _printed(_data(checkpoint))


def write_device_checkpoint(checkpoint: DeviceCheckpoint) -> str:
    """The text of `kubelet_internal_checkpoint`; no entries are written as null (DEV-44)."""
    data = _data(checkpoint)
    return _FILE.encode(_Document(data=data, checksum=fnv1a_32(_printed(data))))


def _ids(ids: tuple[str, ...] | None) -> tuple[DeviceId, ...]:
    return tuple(DeviceId(device_id) for device_id in ids or ())


def _data(checkpoint: DeviceCheckpoint) -> _DataDocument:
    entries = tuple(
        _EntryDocument(
            pod_uid=entry.pod_uid,
            container=entry.container,
            resource=entry.resource,
            device_ids=entry.ids_by_node,
            alloc_resp=entry.allocate_response,
        )
        for entry in checkpoint.entries
    )
    return _DataDocument(entries=entries or None, registered=checkpoint.registered)


def _printed(data: _DataDocument) -> str:
    return _TYPE_NAME + _DATA.dump(data)
