"""The memory provider's state, and its durable form.

A value: every change makes a new one. What pods may reuse of their init containers' memory is
left out of the durable form, as the kubelet leaves it out of its file (MEM-76).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import msgspec

from numalign.errors import StateError
from numalign.memory.machine_state import MachineState, Reusable
from numalign.model.ids import PodUid
from numalign.provider.entry_json import EntryJson
from numalign.provider.values import MemoryBlock

LAYOUT = 1
"""Version of the durable form."""

Blocks = tuple[MemoryBlock, ...]
ContainerBlocks = Mapping[PodUid, Mapping[str, Blocks]]
PodBlocks = Mapping[PodUid, Blocks]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryState:
    """Books, blocks per container, blocks per pod (pod-level management), reusable bytes.

    A container may have an entry without blocks (MEM-40). Pods and containers stand in the
    order in which they first got one. A pod with `pod_blocks` has booked those, and its
    containers' blocks say only how they share them (MEM-61).
    """

    machine: MachineState
    containers: ContainerBlocks = field(default_factory=dict)
    pods: PodBlocks = field(default_factory=dict)
    reusable: Mapping[PodUid, Reusable] = field(default_factory=dict)

    def blocks(self, pod_uid: PodUid, container: str) -> Blocks | None:
        """The blocks of a container; None if it has no entry, which differs from empty."""
        return self.containers.get(pod_uid, {}).get(container)

    def with_containers(self, pod_uid: PodUid, blocks: Mapping[str, Blocks]) -> MemoryState:
        """The state in which the containers of the pod have these blocks; none: no pod."""
        containers = dict(self.containers)
        if blocks:
            containers[pod_uid] = blocks
        else:
            containers.pop(pod_uid, None)
        return replace(self, containers=containers)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMemory:
    """The durable form. `pod_entries` says whether pod-level management was on (MEM-67)."""

    layout: int
    policy: str
    pod_entries: bool
    machine: MachineState
    containers: ContainerBlocks
    pods: PodBlocks

    def to_state(self) -> MemoryState:
        """The state to go on with."""
        return MemoryState(machine=self.machine, containers=self.containers, pods=self.pods)


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(StoredMemory)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """A `StoredMemory` whose containers are JSON already."""

    layout: int
    policy: str
    pod_entries: bool
    # First what grows, and behind it what every admission changes: so what one changes is short.
    containers: msgspec.Raw
    pods: PodBlocks
    machine: MachineState


def entry_json() -> EntryJson[Mapping[str, Blocks]]:
    """What an engine remembers of the JSON of its containers."""
    return EntryJson(_ENCODER.encode)


def encode(
    state: MemoryState,
    *,
    policy: str,
    pod_entries: bool,
    entries: EntryJson[Mapping[str, Blocks]] | None = None,
) -> bytes:
    """`state` as JSON."""
    return _ENCODER.encode(
        _Written(
            layout=LAYOUT,
            policy=policy,
            pod_entries=pod_entries,
            machine=state.machine,
            containers=(entries or entry_json()).of(state.containers),
            pods=state.pods,
        )
    )


def decode(payload: bytes) -> StoredMemory:
    """What `encode` gave; raises StateError for anything else."""
    try:
        stored = _DECODER.decode(payload)
    except msgspec.MsgspecError as error:
        raise StateError(f"the stored memory state cannot be read: {error}") from error
    if stored.layout != LAYOUT:
        raise StateError(f"the stored memory state has layout {stored.layout}, not {LAYOUT}")
    return stored
