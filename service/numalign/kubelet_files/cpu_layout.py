"""The layouts of `cpu_manager_state` (CPU-24) and their printed forms (CPU-25).

Version 2 is written with PodLevelResourceManagers off, version 3 with it on; version 1 is
only read. The file carries no version number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from numalign.kubelet_files.go_collection import TEXT_KEY, MapOf
from numalign.kubelet_files.go_dump import dump_map, dump_struct
from numalign.kubelet_files.go_json import Json, quote_json
from numalign.kubelet_files.go_shape import TEXT, UINT64, Faults, Shape
from numalign.kubelet_files.go_struct import Member, StructOf
from numalign.model.cpu_set import NO_CPUS, CpuSet, CpuSetSyntaxError

TYPE_NAME = "(*state.CPUManagerCheckpoint)"
"""What the kubelet prints for every version."""

OLDER_TYPE_NAME = "(*state.CPUManagerCheckpointV2)"
"""What one release printed for version 2 (CPU-26)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuDocument:
    """A file of version 2 or 3, as it lies there: CPU sets of `entries` are texts."""

    policy_name: str = ""
    default_cpu_set: str = ""
    entries: Mapping[str, Mapping[str, str] | None] | None = field(default_factory=dict)
    pod_entries: Mapping[str, CpuSet] | None = field(default_factory=dict)
    checksum: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OldestCpuDocument:
    """A file of version 1: `entries` maps container ids to CPU set texts."""

    policy_name: str = ""
    default_cpu_set: str = ""
    entries: Mapping[str, str] | None = field(default_factory=dict)
    checksum: int = 0


@dataclass(frozen=True, slots=True)
class _PodEntryText:
    cpu_set: str


class PodEntry(Shape[CpuSet]):
    """One value of `podEntries`: an object with a CPU set text, printed as the set's CPUs.

    The kubelet decodes it with a decoder of its own, so a bad value ends the decoding.
    """

    _TEXT = StructOf(
        _PodEntryText,
        (Member(name="CPUSet", kind="string", key="cpuSet", attribute="cpu_set", shape=TEXT),),
    )

    def zero(self) -> CpuSet:
        """See Shape."""
        return NO_CPUS

    def decode(self, raw: Json, current: CpuSet, faults: Faults) -> CpuSet:
        """See Shape."""
        own_faults = Faults()
        entry = self._TEXT.decode(raw, self._TEXT.zero(), own_faults)
        if own_faults.first is not None:
            faults.stop(own_faults.first)
            return current
        try:
            return CpuSet.parse(entry.cpu_set)
        except CpuSetSyntaxError as error:
            faults.stop(str(error))
            return current

    def dump(self, value: CpuSet) -> str:
        """See Shape."""
        cpus = dump_map((str(cpu), "{}") for cpu in value)
        elements = dump_struct([("elems", "map[int]struct {}", cpus)])
        return dump_struct([("CPUSet", "cpuset.CPUSet", elements)])

    def encode(self, value: CpuSet) -> str:
        """See Shape. The key is left out for an empty set."""
        return f'{{"cpuSet":{quote_json(str(value))}}}' if value else "{}"


_POLICY_NAME = Member(
    name="PolicyName", kind="string", key="policyName", attribute="policy_name", shape=TEXT
)
_DEFAULT_CPU_SET = Member(
    name="DefaultCPUSet",
    kind="string",
    key="defaultCpuSet",
    attribute="default_cpu_set",
    shape=TEXT,
)
_ENTRIES = Member(
    name="Entries",
    kind="map[string]map[string]string",
    key="entries",
    attribute="entries",
    shape=MapOf(TEXT_KEY, MapOf(TEXT_KEY, TEXT)),
    omit_empty=True,
)
_OLDEST_ENTRIES = Member(
    name="Entries",
    kind="map[string]string",
    key="entries",
    attribute="entries",
    shape=MapOf(TEXT_KEY, TEXT),
    omit_empty=True,
)
_POD_ENTRIES = Member(
    name="PodEntries",
    kind="state.PodCPUAssignments",
    key="podEntries",
    attribute="pod_entries",
    shape=MapOf(TEXT_KEY, PodEntry()),
    omit_empty=True,
)
_CHECKSUM = Member(
    name="Checksum", kind="checksum.Checksum", key="checksum", attribute="checksum", shape=UINT64
)

VERSION_1 = StructOf(
    OldestCpuDocument, (_POLICY_NAME, _DEFAULT_CPU_SET, _OLDEST_ENTRIES, _CHECKSUM)
)
VERSION_2 = StructOf(CpuDocument, (_POLICY_NAME, _DEFAULT_CPU_SET, _ENTRIES, _CHECKSUM))
VERSION_3 = StructOf(
    CpuDocument, (_POLICY_NAME, _DEFAULT_CPU_SET, _ENTRIES, _POD_ENTRIES, _CHECKSUM)
)
