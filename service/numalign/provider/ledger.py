"""A provider's books: they are decided on one call at a time, and kept.

The ledger owns the state; engines decide over it, servicers carry messages to it, the store
makes it durable. What each step makes of the books is in `phases`; here it is put into force:

- what is tentative is in no file and in no answer of `state`;
- a prepared part is in the file together with the state before it, so that an abort restores
  exactly what was there, whichever process restarts in between. It is synced only where a loss
  of power would lose something that the Topology Manager's record cannot give back;
- memory changes first and the file follows in the same order, so that a call that is given up
  while the file is being written leaves both with the same story. A file that refuses the
  change takes it back from memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from numalign.errors import Unavailable
from numalign.model.hint import ProviderHints, TopologyHint
from numalign.model.ids import AdmissionId, PodUid
from numalign.model.pod import Container, Pod
from numalign.provider.cleanup import Active, Cleanup
from numalign.provider.engine import (
    Allocated,
    Engine,
    Hinted,
    Lost,
    Preparation,
    Recorded,
)
from numalign.provider.phases import Phases, Prepared, Tentative
from numalign.provider.values import ResourceFacts
from numalign.store.provider_store import ProviderStore

S = TypeVar("S")


class Ledger(Generic[S]):
    """The books of one provider; `opening` makes it over what was kept."""

    def __init__(
        self,
        engine: Engine[S],
        store: ProviderStore,
        cleanup: Cleanup[S],
        phases: Phases[S],
        reports: tuple[str, ...],
        *,
        recorded: bool,
    ) -> None:
        """`recorded`: what pods were given can be had back from the Topology Manager's record."""
        self._engine = engine
        self._store = store
        self._cleanup = cleanup
        self._phases = phases
        self._revision = 0
        self._lock = asyncio.Lock()
        self._changed = asyncio.Event()
        self._fitted = 0
        self._unsaved = False
        self._recorded = recorded
        self.reports = reports

    @property
    def fitted(self) -> int:
        """How often the books were fitted to another engine since the start."""
        return self._fitted

    @property
    def engine(self) -> Engine[S]:
        """The engine that decides."""
        return self._engine

    @property
    def state(self) -> S:
        """The books as they stand: final and prepared parts, nothing tentative."""
        return self._phases.books.state

    @property
    def revision(self) -> int:
        """Counts up at every change of `state` since the start."""
        return self._revision

    @property
    def settled(self) -> bool:
        """Whether all of `state` is final: no outcome of an admission is waited for."""
        return not self._phases.prepared

    async def wait_settled(self, seen: int) -> int:
        """Wait until `state` is settled at another revision than `seen`; the new revision."""
        while self._phases.prepared or self._revision == seen:
            await self._changed.wait()
        return self._revision

    async def hints(
        self, admission_id: AdmissionId, pod: Pod, container: Container | None
    ) -> ProviderHints:
        """Hints for one container, or (None) for the pod; opens the admission if need be."""
        async with self._lock:
            hinted = self._hinted(self._open(admission_id, pod), pod, container)
            self._phases = self._phases.tried(hinted.state)
            return hinted.hints

    def basis(self, admission_id: AdmissionId) -> S:
        """The state that the admission's next call is decided on."""
        return self._phases.basis(admission_id)

    async def look(
        self, admission_id: AdmissionId, pod: Pod, container: Container | None
    ) -> tuple[ProviderHints, tuple[ResourceFacts, ...]]:
        """Hints as an admission would get them now, and what stands behind them.

        For explanations: nothing is opened and nothing is kept, not even a clean-up.
        """
        async with self._lock:
            self._phases.require_certainty()
            hinted = self._hinted(self._phases.basis(admission_id), pod, container)
            return hinted.hints, self._engine.facts(hinted.state, pod, container)

    async def allocate(
        self,
        admission_id: AdmissionId,
        pod: Pod,
        container: Container | None,
        affinity: TopologyHint,
        *,
        last: bool,
        dry_run: bool,
        seal_later: bool = False,
        group: bool = False,
    ) -> Allocated[S]:
        """Take what a container, or (None) the pod, asks for.

        With `last`, and unless it is a dry run, the part is kept as prepared when this
        returns without a failure; but with `seal_later`, an outcome that is `unsealed` waits
        for `seal`, and the part of a `group` waits for `prepare`.
        """
        async with self._lock:
            state = self._open(admission_id, pod)
            sources = self._cleanup.sources()
            if container is None:
                outcome = await self._engine.allocate_pod(state, pod, affinity, sources)
            else:
                outcome = await self._engine.allocate(
                    state, pod, container, affinity, sources, dry_run=dry_run
                )
            self._phases = self._phases.tried(outcome.state)
            if outcome.failure is not None or not last or dry_run:
                return outcome
            if outcome.unsealed and seal_later:
                return outcome
            sealed = await self._seal(
                admission_id, outcome.state, pod, group=group, effects=outcome.unsealed
            )
            return Allocated(
                sealed.state, sealed.failure, outcome.plugin_calls + sealed.plugin_calls
            )

    async def seal(
        self, admission_id: AdmissionId, pod: Pod, *, group: bool = False
    ) -> Allocated[S]:
        """Do what cannot be undone for an admission that was left unsealed.

        The part is kept as prepared when this returns without a failure, unless it is that
        of a `group`, which waits for `prepare`. Raises Unavailable where the admission is not
        open.
        """
        async with self._lock:
            self._require_open(admission_id)
            basis = self._phases.basis(admission_id)
            return await self._seal(admission_id, basis, pod, group=group, effects=True)

    async def prepare(self, admission_id: AdmissionId) -> None:
        """The pods of a group have everything: their part is synced when this returns.

        Raises Unavailable where the admission is not open.
        """
        async with self._lock:
            self._require_open(admission_id)
            part = self._phases.part(admission_id)
            if isinstance(part, Tentative):
                # Which of its pods had effects is not kept: one sync is little for all of them.
                await self._prepare(admission_id, part.state, part.pod_uid, synced=True)

    async def leave(self, admission_id: AdmissionId, pod_uid: PodUid) -> None:
        """The last pod of a group is off; the pods before it stay."""
        async with self._lock:
            before = self._phases
            self._phases = before.left(admission_id, pod_uid)
            if self._phases is not before:
                self._cleanup.undone(pod_uid)

    async def commit(self, admission_id: AdmissionId) -> None:
        """The admission is recorded: forget how to undo it."""
        async with self._lock:
            prepared = admission_id in self._phases.prepared
            self._become(self._phases.commit(admission_id))
            if prepared:
                await self._store.settle(admission_id, restore=False)

    async def abort(
        self, admission_id: AdmissionId, *, keep: bool, pod_uid: PodUid | None = None
    ) -> None:
        """The admission is off. `keep` leaves what was taken to a later clean-up.

        `pod_uid` is the admission's pod, for a provider that was not asked before it was refused.
        """
        async with self._lock:
            before = self._phases
            ended = before.part(admission_id)
            self._become(before.commit(admission_id) if keep else before.abort(admission_id))
            if ended is not None:
                pod_uid = ended.pod_uid
            if keep and pod_uid is not None:
                self._cleanup.refused(pod_uid)
            elif ended is not None:
                self._cleanup.undone(ended.pod_uid)
            if isinstance(ended, Prepared):
                await self._store.settle(admission_id, restore=not keep)
            elif ended is not None and keep:
                await self._replace(ended.state)

    async def release(self, pod_uids: Iterable[PodUid]) -> None:
        """The pods ended."""
        async with self._lock:
            self._phases.require_certainty()
            state = self.state
            for pod_uid in pod_uids:
                state = self._cleanup.released(state, pod_uid)
            await self._replace(state)

    async def reconcile(
        self,
        active: Active,
        committed: frozenset[AdmissionId],
        *,
        ready: bool,
        running: frozenset[tuple[PodUid, str]],
        record_lost: bool = False,
    ) -> tuple[PodUid, ...]:
        """Take the Topology Manager's picture; the pods that were released over it.

        With `record_lost` nobody knows what was committed, so every prepared part is kept: a
        pod that holds too much is released when an agent has said what there is.
        """
        async with self._lock:
            told, outcomes = self._phases.told(committed, record_lost=record_lost)
            self._become(told)
            for outcome in outcomes:
                await self._store.settle(outcome.admission_id, restore=outcome.restore)
            state, gone = self._cleanup.reconciled(self.state, active, ready=ready, running=running)
            await self._replace(state)
            return gone

    async def restore(self, pods: Iterable[Recorded]) -> tuple[tuple[PodUid, Lost], ...]:
        """Give pods back what the record says they have; what they cannot have, or lack."""
        async with self._lock:
            self._phases.require_certainty()
            state = self.state
            lost: list[tuple[PodUid, Lost]] = []
            for recorded in pods:
                restored = self._engine.restore(state, recorded)
                state = restored.state
                lost += ((recorded.pod_uid, each) for each in restored.lost)
                if recorded.pod is not None:
                    named = {each.container for each in restored.lost}
                    lost += (
                        (recorded.pod_uid, each)
                        for each in self._engine.missing(state, recorded.pod, recorded.finished)
                        if each.container not in named
                    )
            await self._replace(state)
            return tuple(lost)

    def note(self, reports: Iterable[str]) -> None:
        """Add to what is reported; what was said before is not said again."""
        self.reports = tuple(dict.fromkeys((*self.reports, *reports)))

    def fits(self, engine: Engine[S]) -> tuple[str, ...]:
        """What `change_engine` would report. Raises StartError where `engine` would refuse."""
        return engine.start(self._engine.encode(self.state)).reports

    async def change_engine(self, engine: Engine[S]) -> tuple[str, ...]:
        """Decide by another engine from now on, over the same books fitted to it; reports.

        Waits until no admission is open, so that each is decided by one engine. Raises
        StartError where `engine` refuses the books, and nothing has changed then.
        """
        while True:
            changed = self._changed
            async with self._lock:
                if self._phases.tentative is None and not self._phases.prepared:
                    return await self._change_engine(engine)
            await changed.wait()

    async def prepare_container(
        self, pod: Pod, container: Container, affinity: TopologyHint
    ) -> Preparation:
        """What to apply to a container; a late allocation under `affinity` is kept (DEV-40)."""
        async with self._lock:
            self._phases.require_certainty()
            state, preparation = await self._engine.prepare_container(
                self.state, pod, container, affinity=affinity, sources=self._cleanup.sources()
            )
            await self._replace(state)
            return preparation

    async def add_container(self, pod: Pod, container: Container) -> None:
        """The container is about to start: what finished init containers held is freed."""
        async with self._lock:
            self._phases.require_certainty()
            await self._replace(self._engine.add_container(self.state, pod, container))

    async def remove_container(self, pod_uid: PodUid, container: str) -> None:
        """Give back what one container holds."""
        async with self._lock:
            self._phases.require_certainty()
            await self._replace(self._engine.remove_container(self.state, pod_uid, container))

    async def facts_changed(self, noted: Callable[[S], S]) -> None:
        """The engine's facts about the machine changed: `noted` carries that into the state.

        An admission that is open keeps its tentative state; it decides over the new facts.
        """
        async with self._lock:
            books = self._phases.books
            state = noted(books.state)
            self._become(self._phases.standing(state, books.payload))
            if state is books.state and not self._unsaved:
                return
            payload = self._engine.encode(state)
            self._unsaved = payload != books.payload
            if self._unsaved:
                await self._store.save(payload)
                self._phases = self._phases.standing(state, payload)
                self._unsaved = False

    async def _change_engine(self, engine: Engine[S]) -> tuple[str, ...]:
        started = engine.start(self._engine.encode(self.state))
        payload = engine.encode(started.state)
        if payload != self._phases.books.payload:
            await self._store.save(payload)
        self._engine = engine
        self._cleanup.change_engine(engine)
        self._fitted += 1
        self._become(self._phases.standing(started.state, payload))
        self.note(started.reports)
        return started.reports

    def _hinted(self, state: S, pod: Pod, container: Container | None) -> Hinted[S]:
        sources = self._cleanup.sources()
        if container is None:
            return self._engine.pod_topology_hints(state, pod, sources)
        return self._engine.topology_hints(state, pod, container, sources)

    def _require_open(self, admission_id: AdmissionId) -> None:
        if not self._phases.is_open(admission_id):
            raise Unavailable(f"provider {self._engine.name}: admission {admission_id} is not open")

    async def _seal(
        self, admission_id: AdmissionId, state: S, pod: Pod, *, group: bool, effects: bool
    ) -> Allocated[S]:
        sealed = await self._engine.seal(state, pod)
        self._phases = self._phases.tried(sealed.state)
        if sealed.failure is None and not group:
            # The record names what was given, not what a plugin answered when it was told.
            synced = effects or not self._recorded
            await self._prepare(admission_id, sealed.state, pod.uid, synced=synced)
        return sealed

    def _open(self, admission_id: AdmissionId, pod: Pod) -> S:
        before = self._phases
        self._phases = before.opened(admission_id, pod.uid)
        if self._phases is not before:
            if before.tentative is not None and not before.is_open(admission_id):
                self._cleanup.undone(before.tentative.pod_uid)
            self._cleanup.admitting(pod)
        return self._phases.basis(admission_id)

    async def _prepare(
        self, admission_id: AdmissionId, state: S, pod_uid: PodUid, *, synced: bool
    ) -> None:
        before = self._phases
        payload = self._engine.encode(state)
        self._become(before.prepare(payload))
        try:
            await self._store.prepare(
                admission_id, pod_uid, before.books.payload, payload, synced=synced
            )
        except Exception:
            self._become(before)
            raise

    async def _replace(self, state: S) -> None:
        before = self._phases
        if state is before.books.state:
            return
        payload = self._engine.encode(state)
        self._become(before.standing(state, payload))
        if payload != before.books.payload:
            try:
                await self._store.save(payload)
            except Exception:
                self._become(before)
                raise

    def _become(self, phases: Phases[S]) -> None:
        """Put `phases` into force, and wake whoever waits for other books or for an end."""
        before, self._phases = self._phases, phases
        if phases.books is not before.books:
            self._revision += 1
        self._changed.set()
        self._changed = asyncio.Event()
