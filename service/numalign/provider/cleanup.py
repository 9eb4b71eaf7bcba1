"""When the records of pods that ended go away: at once, or at the next call that cleans up.

Two strategies, chosen at start. Eager is numalign's own: a release frees at once, so nothing
is ever stale and engines are told never to look. Lazy is the kubelet's (MEM-54, CPU-72,
DEV-21): a pod that ended only stops being active, and the next hint or allocate call frees.
Separate from the ledger so that neither the ledger nor an engine asks for the mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

from numalign.model.ids import PodUid
from numalign.model.pod import Pod
from numalign.provider.engine import Engine, Sources
from numalign.provider.phases import ended

S = TypeVar("S")

Active = Mapping[PodUid, frozenset[str]]
"""Each active pod with the names of its init and app containers."""


class Cleanup(Protocol[S]):
    """What a provider does about pods that came, went, or were never heard of."""

    def sources(self) -> Sources:
        """What an engine is told with each call."""

    def admitting(self, pod: Pod) -> None:
        """The pod is being decided on, so its records are not stale."""

    def refused(self, pod_uid: PodUid) -> None:
        """The pod was refused, and what it took stays."""

    def undone(self, pod_uid: PodUid) -> None:
        """The admission never was: a dry run, a call given up, or a part dropped."""

    def released(self, state: S, pod_uid: PodUid) -> S:
        """The pod ended."""

    def reconciled(
        self, state: S, active: Active, *, ready: bool, running: frozenset[tuple[PodUid, str]]
    ) -> tuple[S, tuple[PodUid, ...]]:
        """The whole picture came in; also the pods that were released over it."""

    def change_engine(self, engine: Engine[S]) -> None:
        """Another engine decides from now on."""


class EagerCleanup(Generic[S]):
    """Frees at once; engines see no stale record, so `active` is None for them."""

    def __init__(self, engine: Engine[S]) -> None:
        self._engine = engine
        self._sources = Sources()

    def sources(self) -> Sources:
        """Always the same: nothing is stale."""
        return self._sources

    def admitting(self, pod: Pod) -> None:
        """Nothing to note: the ledger drops what a refused pod took."""

    def refused(self, pod_uid: PodUid) -> None:
        """Nothing to note: the ledger dropped what the pod took."""

    def undone(self, pod_uid: PodUid) -> None:
        """Nothing to note: the ledger dropped what the pod took."""

    def released(self, state: S, pod_uid: PodUid) -> S:
        """Free everything that the pod holds."""
        return self._engine.release(state, pod_uid)

    def reconciled(
        self, state: S, active: Active, *, ready: bool, running: frozenset[tuple[PodUid, str]]
    ) -> tuple[S, tuple[PodUid, ...]]:
        """Free every pod that is not in the picture, once the picture is complete."""
        self._sources = Sources(running=running)
        gone = ended(self._engine.pods(state), active, complete=ready)
        for pod_uid in gone:
            state = self._engine.release(state, pod_uid)
        return state, gone

    def change_engine(self, engine: Engine[S]) -> None:
        """Release through `engine` from now on."""
        self._engine = engine


class LazyCleanup(Generic[S]):
    """Remembers which pods are active and leaves the rest to the engine's next call.

    Until the first complete picture nothing is cleaned up, as in a kubelet whose pod
    sources are not ready.
    """

    def __init__(self) -> None:
        self._active: dict[PodUid, frozenset[str]] = {}
        self._before: tuple[PodUid, frozenset[str]] | None = None
        self._ready = False
        self._running: frozenset[tuple[PodUid, str]] = frozenset()

    def sources(self) -> Sources:
        """The active pods, if the picture is complete."""
        return Sources(
            active=self._active if self._ready else None, ready=self._ready, running=self._running
        )

    def admitting(self, pod: Pod) -> None:
        """A pod that is being decided on counts as active."""
        names = self._active.get(pod.uid)
        self._before = None if names is None else (pod.uid, names)
        self._active[pod.uid] = frozenset(c.name for c in pod.all_containers())

    def refused(self, pod_uid: PodUid) -> None:
        """A refused pod stops being active; what it took stays until the next clean-up."""
        self._active.pop(pod_uid, None)

    def undone(self, pod_uid: PodUid) -> None:
        """The pod is as active as it was before the admission opened."""
        self._active.pop(pod_uid, None)
        if self._before is not None and self._before[0] == pod_uid:
            self._active[pod_uid] = self._before[1]

    def released(self, state: S, pod_uid: PodUid) -> S:
        """A pod that ended stops being active; what it holds stays until the next clean-up."""
        self._active.pop(pod_uid, None)
        return state

    def reconciled(
        self, state: S, active: Active, *, ready: bool, running: frozenset[tuple[PodUid, str]]
    ) -> tuple[S, tuple[PodUid, ...]]:
        """Take over the picture; nothing is freed now."""
        self._active = dict(active)
        self._ready = ready
        self._running = running
        return state, ()

    def change_engine(self, engine: Engine[S]) -> None:
        """Nothing to note: the engine's next call cleans up."""
