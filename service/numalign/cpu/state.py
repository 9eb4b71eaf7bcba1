"""What the CPU provider remembers, and its JSON.

Values only: whoever changes the state makes a new one. CPU-22, and the reusable CPUs of
CPU-66, which are not part of the JSON (CPU-68).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import msgspec

from numalign.model.cpu_set import NO_CPUS, CpuSet
from numalign.model.ids import PodUid
from numalign.provider.entry_json import EntryJson

Assignments: TypeAlias = Mapping[PodUid, Mapping[str, CpuSet]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuState:
    """The shared CPUs, and who holds which others.

    `default` is the shared set; `assignments` maps pod and container to exclusive CPUs;
    `pod_sets` holds what pods with pod-level resources hold as a whole; `reusable` holds the
    CPUs that init containers of the pod decided last leave to the containers after them.
    A pod without containers is in no mapping.
    """

    default: CpuSet = NO_CPUS
    assignments: Assignments = field(default_factory=dict)
    pod_sets: Mapping[PodUid, CpuSet] = field(default_factory=dict)
    reusable: Mapping[PodUid, CpuSet] = field(default_factory=dict)

    def assignment(self, pod_uid: PodUid, container: str) -> CpuSet | None:
        """The exclusive CPUs of a container; None if it has no entry."""
        containers = self.assignments.get(pod_uid)
        return None if containers is None else containers.get(container)

    def cpus_of(self, pod_uid: PodUid, container: str) -> CpuSet:
        """What the container runs on: its entry, even an empty one, else the shared set."""
        assigned = self.assignment(pod_uid, container)
        return self.default if assigned is None else assigned

    def with_assignment(self, pod_uid: PodUid, container: str, cpus: CpuSet) -> CpuState:
        """The state after `container` was given `cpus`."""
        containers = {**self.assignments.get(pod_uid, {}), container: cpus}
        return replace(self, assignments={**self.assignments, pod_uid: containers})

    def without_assignment(self, pod_uid: PodUid, container: str) -> CpuState:
        """The state after the entry of `container` was dropped; its CPUs are nobody's."""
        containers = {c: s for c, s in self.assignments[pod_uid].items() if c != container}
        assignments = {**self.assignments, pod_uid: containers}
        if not containers:
            del assignments[pod_uid]
        return replace(self, assignments=assignments)


def union(sets: Mapping[str, CpuSet]) -> CpuSet:
    """All CPUs of one pod's containers."""
    bits = 0
    for cpus in sets.values():
        bits |= cpus.bits
    return CpuSet(bits)


def exclusive_cpus(assignments: Assignments) -> CpuSet:
    """All CPUs that any container holds."""
    bits = 0
    for containers in assignments.values():
        bits |= union(containers).bits
    return CpuSet(bits)


class Checkpoint(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The JSON of a state: its policy, and CPU sets as text.

    `pod_entries` None says that the writer knew no pod sets.
    """

    policy_name: str
    default_cpu_set: str
    entries: dict[PodUid, dict[str, str]] = {}
    pod_entries: dict[PodUid, str] | None = None


class _Written(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", kw_only=True):
    """A `Checkpoint` whose entries are JSON already."""

    policy_name: str
    # First what grows, and behind it what every admission changes: so what one changes is short.
    entries: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    default_cpu_set: str
    pod_entries: dict[PodUid, str] | None = None


class CheckpointError(ValueError):
    """The stored bytes are no state."""


_DECODER = msgspec.json.Decoder(Checkpoint)
_ENCODER = msgspec.json.Encoder(order="deterministic")


def _encode_entry(containers: Mapping[str, CpuSet]) -> bytes:
    return _ENCODER.encode({container: str(cpus) for container, cpus in containers.items()})


def entry_json() -> EntryJson[Mapping[str, CpuSet]]:
    """What an engine remembers of the JSON of its assignments."""
    return EntryJson(_encode_entry)


def encode(
    state: CpuState,
    policy: str,
    *,
    pod_sets: bool,
    entries: EntryJson[Mapping[str, CpuSet]] | None = None,
) -> bytes:
    """The durable part of `state`, its entries in the order of the pods."""
    written = (entries or entry_json()).of(state.assignments)
    checkpoint = _Written(
        policy_name=policy,
        default_cpu_set=str(state.default),
        entries=written if state.assignments else msgspec.UNSET,
        pod_entries={p: str(cpus) for p, cpus in state.pod_sets.items()} if pod_sets else None,
    )
    return _ENCODER.encode(checkpoint)


def decode(stored: bytes) -> Checkpoint:
    """What `encode` wrote, its CPU sets not parsed yet. Raises CheckpointError."""
    try:
        return _DECODER.decode(stored)
    except msgspec.DecodeError as error:
        raise CheckpointError(str(error)) from error
