"""The deciding part of a hint provider, as the ledger and the servicer see it.

An engine is a set of pure functions over a state value `S`: every call takes the state and
returns the next one. It never does I/O, never logs, and never keeps anything between calls
but its settings and its facts about the machine. Who owns the state, makes it durable and
undoes an aborted admission is the ledger, so that no engine knows about two phases.

An engine that must ask somebody in the middle of a decision (the device engine asks a
plugin) does so through the awaitable port it was built with; hence `allocate` is async.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from numalign.model.cpu_set import CpuSet
from numalign.model.hint import NO_HINT, ProviderHints, TopologyHint
from numalign.model.ids import PodUid
from numalign.model.pod import Container, Pod
from numalign.provider.values import (
    AllocationFailure,
    ContainerEdits,
    Holding,
    PluginCall,
    PodHolding,
    ResourceFacts,
)

S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What the agent said about its pods, as far as it changes a decision.

    `active` maps each active pod to its init and app container names. None: nothing may be
    cleaned up (pod sources are not ready, or pods are released eagerly and there is never
    anything stale). `ready` and `running` matter to re-admission after a restart (DEV-29).
    """

    active: Mapping[PodUid, frozenset[str]] | None = None
    ready: bool = True
    running: frozenset[tuple[PodUid, str]] = frozenset()

    def is_active(self, pod_uid: PodUid, container: str) -> bool:
        """Whether a record of this container may stay."""
        return self.active is None or container in self.active.get(pod_uid, frozenset())


NO_SOURCES = Sources()
"""Nobody says which pods are active."""


@dataclass(frozen=True, slots=True)
class Started(Generic[S]):
    """The state to go on with, and a line for everything that was re-based or dropped."""

    state: S
    reports: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Something that a pod was given and cannot have back, or asks for and does not hold.

    `container` is empty for the pod as a whole. `differs`: another amount is held than asked
    for, so that this is not the pod that was admitted.
    """

    container: str
    message: str
    differs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What the record says that a pod was given by this provider.

    `holdings` stand in the order in which they are to be taken back; `finished` names init
    containers that have ended. `pod` is given where it is to be said what it does not hold.
    """

    pod_uid: PodUid
    holdings: tuple[Holding, ...]
    pod_holding: PodHolding = field(default_factory=PodHolding)
    finished: frozenset[str] = frozenset()
    pod: Pod | None = None


@dataclass(frozen=True, slots=True)
class Restored(Generic[S]):
    """The state after a pod took back what it had, and what it could not."""

    state: S
    lost: tuple[Lost, ...] = ()


@dataclass(frozen=True, slots=True)
class Hinted(Generic[S]):
    """Hints, and the state after the clean-up that asking for them may do (CPU-38, MEM-23)."""

    state: S
    hints: ProviderHints


@dataclass(frozen=True, slots=True)
class Allocated(Generic[S]):
    """The outcome of one allocation; `state` keeps what a failed one left taken.

    `unsealed`: the pod holds something that `seal` has yet to do what cannot be undone for.
    """

    state: S
    failure: AllocationFailure | None = None
    plugin_calls: tuple[PluginCall, ...] = ()
    unsealed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """What to apply to a container before it starts; None leaves a setting alone.

    `conflicts`: a line for each value of `edits` that was left out for another one (DEV-42).
    `newly_allocated`: it was given something only now. `unready`: that has yet to be made ready.
    """

    cpus: CpuSet | None = None
    mems: tuple[int, ...] | None = None
    edits: ContainerEdits | None = None
    conflicts: tuple[str, ...] = ()
    newly_allocated: bool = False
    unready: bool = False


class Engine(Protocol[S]):
    """One provider's decisions. `name` is `device`, `cpu` or `memory`."""

    name: str

    def resources(self) -> tuple[str, ...]:
        """Resource names served now; a trailing `*` is a prefix (`hugepages-*`)."""

    def start(self, stored: bytes | None) -> Started[S]:
        """The state to start with, from what `encode` gave before (None: nothing stored).

        Raises StartError with the kubelet's text where the start check refuses.
        """

    def restore(self, state: S, recorded: Recorded) -> Restored[S]:
        """Give a pod back what `state` has lost of it, as far as it is free and exists.

        What the pod holds already stays as it is.
        """

    def missing(self, state: S, pod: Pod, finished: frozenset[str]) -> tuple[Lost, ...]:
        """What the pod would be given if it came now, and does not hold.

        Nothing is decided on; init containers in `finished` need nothing any more.
        """

    def encode(self, state: S) -> bytes:
        """The durable part of `state`, as JSON."""

    def topology_hints(
        self, state: S, pod: Pod, container: Container, sources: Sources
    ) -> Hinted[S]:
        """Hints for one container."""

    def pod_topology_hints(self, state: S, pod: Pod, sources: Sources) -> Hinted[S]:
        """Hints for the pod as a whole."""

    async def allocate(
        self,
        state: S,
        pod: Pod,
        container: Container,
        affinity: TopologyHint,
        sources: Sources,
        *,
        dry_run: bool = False,
    ) -> Allocated[S]:
        """Take what one container asks for, under `affinity`.

        In a dry run nothing is done outside that cannot be undone.
        """

    async def allocate_pod(
        self, state: S, pod: Pod, affinity: TopologyHint, sources: Sources
    ) -> Allocated[S]:
        """Take what a pod with pod-level resources asks for, under `affinity`."""

    async def seal(self, state: S, pod: Pod) -> Allocated[S]:
        """Do what cannot be undone, once, after the last allocation of an admission.

        A dry run never gets here. The device engine calls its plugins' Allocate here; the
        others return the state as it is.
        """

    def release(self, state: S, pod_uid: PodUid) -> S:
        """Give back everything the pod holds, each thing once."""

    def remove_container(self, state: S, pod_uid: PodUid, container: str) -> S:
        """Give back what one container holds (CPU-69, MEM-49); nothing held is not an error."""

    def add_container(self, state: S, pod: Pod, container: Container) -> S:
        """The container is about to start: free what finished init containers held."""

    def remove_stale(self, state: S, sources: Sources) -> S:
        """Drop every record of a container that is not active."""

    def pods(self, state: S) -> frozenset[PodUid]:
        """The pods that hold anything."""

    def shared_cpus(self, state: S) -> CpuSet | None:
        """CPUs of containers without exclusive ones; None for engines of other resources."""

    def holdings(self, state: S, pod_uid: PodUid) -> tuple[Holding, ...]:
        """What each container of the pod holds, in order of container name."""

    def pod_holding(self, state: S, pod_uid: PodUid) -> PodHolding:
        """What the pod holds as a whole."""

    async def prepare_container(
        self,
        state: S,
        pod: Pod,
        container: Container,
        *,
        affinity: TopologyHint = NO_HINT,
        sources: Sources = NO_SOURCES,
    ) -> tuple[S, Preparation]:
        """What to apply to the container at its start.

        What it gets only now is chosen under `affinity`, the hint stored for the container.
        """

    def facts(self, state: S, pod: Pod, container: Container | None) -> tuple[ResourceFacts, ...]:
        """What stands behind the hints, for one container or (None) for the pod."""
