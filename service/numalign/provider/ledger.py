"""A provider's books in two phases: what is final, what is prepared, what is only tried.

The ledger owns the state; engines decide over it, servicers carry messages to it, the store
makes it durable. One admission is open at a time, since the Topology Manager decides one at a
time and delivers each outcome before the next begins. Phases of an admission here:

    (nothing) --hints, allocate--> tentative --last allocate--> prepared --commit--> final
        ^                              |                            |
        +------------- abort ----------+----------- abort ----------+

Invariants:
- what is tentative is in no file and in no answer of `state`;
- a prepared part is on disk together with the state before it, so that an abort restores
  exactly what was there, whoever restarts in between;
- after a start with prepared parts nothing is decided until the Topology Manager has said
  which of them were committed (presumed abort: the others are dropped, unless the Topology
  Manager has lost its record and cannot know);
- an admission that was opened and never prepared ends when another one opens;
- an admission that is over stays over: a call that comes late for it is refused;
- memory changes first and the file follows in the same order, so that a call that is given up
  while the file is being written leaves both with the same story. A file that refuses the
  change takes it back from memory.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from numalign.errors import StateError, Unavailable
from numalign.model.hint import ProviderHints, TopologyHint
from numalign.model.ids import AdmissionId, PodUid
from numalign.model.pod import Container, Pod
from numalign.provider.cleanup import Active, Cleanup
from numalign.provider.engine import (
    Allocated,
    Engine,
    Lost,
    Preparation,
    Recorded,
    Started,
)
from numalign.provider.values import ResourceFacts
from numalign.store.provider_store import ProviderStore

S = TypeVar("S")

_OVER_KEPT = 64
"""How many admissions that are over are remembered: far more than can be late at once."""


@dataclass(slots=True)
class _Tentative(Generic[S]):
    admission_id: AdmissionId
    pod_uid: PodUid
    state: S


@dataclass(slots=True)
class _Prepared(Generic[S]):
    pod_uid: PodUid
    before: S
    before_payload: bytes


@dataclass(slots=True)
class _Books(Generic[S]):
    state: S
    payload: bytes
    revision: int = 0
    tentative: _Tentative[S] | None = None
    prepared: dict[AdmissionId, _Prepared[S]] = field(default_factory=dict)


class Ledger(Generic[S]):
    """The books of one provider. Create it with `open_ledger`."""

    def __init__(
        self,
        engine: Engine[S],
        store: ProviderStore,
        cleanup: Cleanup[S],
        books: _Books[S],
        reports: tuple[str, ...],
    ) -> None:
        self._engine = engine
        self._store = store
        self._cleanup = cleanup
        self._books = books
        self._lock = asyncio.Lock()
        self._changed = asyncio.Event()
        self._in_doubt = bool(books.prepared)
        self._over: deque[AdmissionId] = deque(maxlen=_OVER_KEPT)
        self._fitted = 0
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
        return self._books.state

    @property
    def revision(self) -> int:
        """Counts up at every change of `state` since the start."""
        return self._books.revision

    @property
    def settled(self) -> bool:
        """Whether all of `state` is final: no outcome of an admission is waited for."""
        return not self._books.prepared

    async def wait_settled(self, seen: int) -> int:
        """Wait until `state` is settled at another revision than `seen`; the new revision."""
        while self._books.prepared or self._books.revision == seen:
            await self._changed.wait()
        return self._books.revision

    async def hints(
        self, admission_id: AdmissionId, pod: Pod, container: Container | None
    ) -> ProviderHints:
        """Hints for one container, or (None) for the pod; opens the admission if need be."""
        async with self._lock:
            tentative = self._open(admission_id, pod)
            sources = self._cleanup.sources()
            if container is None:
                hinted = self._engine.pod_topology_hints(tentative.state, pod, sources)
            else:
                hinted = self._engine.topology_hints(tentative.state, pod, container, sources)
            tentative.state = hinted.state
            return hinted.hints

    def basis(self, admission_id: AdmissionId) -> S:
        """The state that the admission's next call is decided on."""
        tentative = self._books.tentative
        if tentative is not None and tentative.admission_id == admission_id:
            return tentative.state
        return self._books.state

    async def look(
        self, admission_id: AdmissionId, pod: Pod, container: Container | None
    ) -> tuple[ProviderHints, tuple[ResourceFacts, ...]]:
        """Hints as an admission would get them now, and what stands behind them.

        For explanations: nothing is opened and nothing is kept, not even a clean-up.
        """
        async with self._lock:
            self._refuse_in_doubt()
            state = self.basis(admission_id)
            sources = self._cleanup.sources()
            if container is None:
                hinted = self._engine.pod_topology_hints(state, pod, sources)
            else:
                hinted = self._engine.topology_hints(state, pod, container, sources)
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
    ) -> Allocated[S]:
        """Take what a container, or (None) the pod, asks for.

        With `last`, and unless it is a dry run, the part is on disk as prepared when this
        returns without a failure; but with `seal_later`, an outcome that is `unsealed` waits
        for `seal`.
        """
        async with self._lock:
            tentative = self._open(admission_id, pod)
            sources = self._cleanup.sources()
            if container is None:
                outcome = await self._engine.allocate_pod(tentative.state, pod, affinity, sources)
            else:
                outcome = await self._engine.allocate(
                    tentative.state, pod, container, affinity, sources, dry_run=dry_run
                )
            tentative.state = outcome.state
            if outcome.failure is not None or not last or dry_run:
                return outcome
            if outcome.unsealed and seal_later:
                return outcome
            sealed = await self._seal(tentative, pod)
            return Allocated(
                sealed.state, sealed.failure, outcome.plugin_calls + sealed.plugin_calls
            )

    async def seal(self, admission_id: AdmissionId, pod: Pod) -> Allocated[S]:
        """Do what cannot be undone for an admission that was left unsealed.

        The part is on disk as prepared when this returns without a failure. Raises
        Unavailable where the admission is not open.
        """
        async with self._lock:
            tentative = self._books.tentative
            if tentative is None or tentative.admission_id != admission_id:
                raise Unavailable(
                    f"provider {self._engine.name}: admission {admission_id} is not open"
                )
            return await self._seal(tentative, pod)

    async def commit(self, admission_id: AdmissionId) -> None:
        """The admission is recorded: forget how to undo it."""
        async with self._lock:
            self._over.append(admission_id)
            if self._books.prepared.pop(admission_id, None) is not None:
                self._wake()
                await self._store.settle(admission_id, restore=False)

    async def abort(self, admission_id: AdmissionId, *, keep: bool) -> None:
        """The admission is off. `keep` leaves what was taken to a later clean-up."""
        async with self._lock:
            self._over.append(admission_id)
            tentative = self._books.tentative
            if tentative is not None and tentative.admission_id == admission_id:
                self._books.tentative = None
                self._wake()
                self._close(tentative.pod_uid, keep=keep)
                if keep:
                    await self._replace(tentative.state)
            prepared = self._books.prepared.pop(admission_id, None)
            if prepared is None:
                return
            self._close(prepared.pod_uid, keep=keep)
            if keep:
                self._wake()
            else:
                self._set(prepared.before, prepared.before_payload)
            await self._store.settle(admission_id, restore=not keep)

    async def release(self, pod_uids: Iterable[PodUid]) -> None:
        """The pods ended."""
        async with self._lock:
            self._refuse_in_doubt()
            state = self._books.state
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
            if self._books.tentative is not None:
                self._over.append(self._books.tentative.admission_id)
                self._books.tentative = None
            for admission_id, part in reversed(tuple(self._books.prepared.items())):
                drop = admission_id not in committed and not record_lost
                if drop:
                    self._set(part.before, part.before_payload)
                del self._books.prepared[admission_id]
                self._over.append(admission_id)
                await self._store.settle(admission_id, restore=drop)
            self._in_doubt = False
            self._wake()
            state, gone = self._cleanup.reconciled(
                self._books.state, active, ready=ready, running=running
            )
            await self._replace(state)
            return gone

    async def restore(self, pods: Iterable[Recorded]) -> tuple[tuple[PodUid, Lost], ...]:
        """Give pods back what the record says they have; what they cannot have, or lack."""
        async with self._lock:
            self._refuse_in_doubt()
            state = self._books.state
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
        return engine.start(self._engine.encode(self._books.state)).reports

    async def change_engine(self, engine: Engine[S]) -> tuple[str, ...]:
        """Decide by another engine from now on, over the same books fitted to it; reports.

        Waits until no admission is open, so that each is decided by one engine. Raises
        StartError where `engine` refuses the books, and nothing has changed then.
        """
        while True:
            changed = self._changed
            async with self._lock:
                if self._books.tentative is None and not self._books.prepared:
                    return await self._change_engine(engine)
            await changed.wait()

    async def prepare_container(self, pod: Pod, container: Container) -> Preparation:
        """What to apply to a container; a late allocation it makes is kept (DEV-40)."""
        async with self._lock:
            self._refuse_in_doubt()
            state, preparation = await self._engine.prepare_container(
                self._books.state, pod, container
            )
            await self._replace(state)
            return preparation

    async def add_container(self, pod: Pod, container: Container) -> None:
        """The container is about to start: what finished init containers held is freed."""
        async with self._lock:
            self._refuse_in_doubt()
            await self._replace(self._engine.add_container(self._books.state, pod, container))

    async def remove_container(self, pod_uid: PodUid, container: str) -> None:
        """Give back what one container holds."""
        async with self._lock:
            self._refuse_in_doubt()
            await self._replace(
                self._engine.remove_container(self._books.state, pod_uid, container)
            )

    async def facts_changed(self, noted: Callable[[S], S]) -> None:
        """The engine's facts about the machine changed: `noted` carries that into the state.

        An admission that is open keeps its tentative state; it decides over the new facts.
        """
        async with self._lock:
            self._set(noted(self._books.state), self._books.payload)
            payload = self._engine.encode(self._books.state)
            if payload != self._books.payload:
                await self._store.save(payload)
                self._books.payload = payload

    async def _change_engine(self, engine: Engine[S]) -> tuple[str, ...]:
        started = engine.start(self._engine.encode(self._books.state))
        payload = engine.encode(started.state)
        if payload != self._books.payload:
            await self._store.save(payload)
        self._engine = engine
        self._cleanup.change_engine(engine)
        self._fitted += 1
        self._set(started.state, payload)
        self.note(started.reports)
        return started.reports

    async def _seal(self, tentative: _Tentative[S], pod: Pod) -> Allocated[S]:
        sealed = await self._engine.seal(tentative.state, pod)
        tentative.state = sealed.state
        if sealed.failure is None:
            await self._prepare(tentative)
        return sealed

    def _open(self, admission_id: AdmissionId, pod: Pod) -> _Tentative[S]:
        self._refuse_in_doubt()
        tentative = self._books.tentative
        if tentative is None or tentative.admission_id != admission_id:
            if admission_id in self._books.prepared or admission_id in self._over:
                raise Unavailable(f"provider {self._engine.name}: admission {admission_id} is over")
            if tentative is not None:
                self._over.append(tentative.admission_id)
                self._cleanup.undone(tentative.pod_uid)
            tentative = _Tentative(admission_id, pod.uid, self._books.state)
            self._books.tentative = tentative
            self._cleanup.admitting(pod)
        return tentative

    def _close(self, pod_uid: PodUid, *, keep: bool) -> None:
        if keep:
            self._cleanup.refused(pod_uid)
        else:
            self._cleanup.undone(pod_uid)

    def _refuse_in_doubt(self) -> None:
        if self._in_doubt:
            raise Unavailable(
                f"provider {self._engine.name} restarted and waits to be told which "
                "admissions were committed"
            )

    async def _prepare(self, tentative: _Tentative[S]) -> None:
        books = self._books
        admission_id = tentative.admission_id
        before, before_payload = books.state, books.payload
        after = self._engine.encode(tentative.state)
        books.prepared[admission_id] = _Prepared(tentative.pod_uid, before, before_payload)
        books.tentative = None
        self._set(tentative.state, after)
        try:
            await self._store.prepare(admission_id, tentative.pod_uid, before_payload, after)
        except Exception:
            del books.prepared[admission_id]
            books.tentative = tentative
            self._set(before, before_payload)
            raise

    async def _replace(self, state: S) -> None:
        before, before_payload = self._books.state, self._books.payload
        if state is before:
            return
        payload = self._engine.encode(state)
        self._set(state, payload)
        if payload != before_payload:
            try:
                await self._store.save(payload)
            except Exception:
                self._set(before, before_payload)
                raise

    def _set(self, state: S, payload: bytes) -> None:
        self._books.state = state
        self._books.payload = payload
        self._books.revision += 1
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


async def open_ledger(engine: Engine[S], store: ProviderStore, cleanup: Cleanup[S]) -> Ledger[S]:
    """A ledger over what the store holds.

    Raises StartError where the engine's start check refuses the stored state. A stored state
    that cannot be read at all is reported, and the books begin empty: the Topology Manager's
    record gives back what it knows.
    """
    stored = await store.load()
    started = _started(engine, stored.payload)
    payload = engine.encode(started.state)
    books: _Books[S] = _Books(started.state, payload)
    for part in stored.prepared:
        before = _started(engine, part.before).state
        books.prepared[part.admission_id] = _Prepared(part.pod_uid, before, engine.encode(before))
    if payload != stored.payload and not stored.prepared:
        await store.save(payload)
    return Ledger(engine, store, cleanup, books, started.reports)


def _started(engine: Engine[S], payload: bytes | None) -> Started[S]:
    try:
        return engine.start(payload)
    except StateError as error:
        return Started(engine.start(None).state, (f"set aside: {error}",))
