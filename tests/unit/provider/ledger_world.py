"""A ledger over the simplest engine there is: a state is the names of the pods that hold a thing.

Shared by the tests of ledger and servicer.
"""

# ruff: noqa: ARG002 - an engine is asked with more than this one looks at
from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from numalign.model.cpu_set import CpuSet
from numalign.model.hint import NO_HINT, ProviderHints, TopologyHint
from numalign.model.ids import AdmissionId, PodUid
from numalign.model.numa_mask import NumaMask
from numalign.model.pod import Container, Pod
from numalign.provider.cleanup import Cleanup, EagerCleanup
from numalign.provider.engine import (
    NO_SOURCES,
    Allocated,
    Hinted,
    Lost,
    Preparation,
    Recorded,
    Restored,
    Sources,
    Started,
)
from numalign.provider.ledger import Ledger
from numalign.provider.opening import open_ledger
from numalign.provider.values import AllocationFailure, Holding, PodHolding, ResourceFacts
from numalign.store.database import Database
from numalign.store.provider_store import ProviderStore

State = tuple[str, ...]
HINT = TopologyHint(NumaMask(1), True)


def pod(uid: str) -> Pod:
    """A pod with containers `i` and `c`."""
    return Pod(
        uid=PodUid(uid),
        init_containers=(Container(name="i", is_init=True),),
        containers=(Container(name="c"),),
    )


def admission(number: int) -> AdmissionId:
    """An admission id."""
    return AdmissionId(f"admission-{number}")


@dataclass
class ListEngine:
    """Gives everybody a thing, but for pods called `refused`; notes what it sealed."""

    name: str = "list"
    sealed: list[str] = field(default_factory=list)
    seal_failure: AllocationFailure | None = None

    def resources(self) -> tuple[str, ...]:
        return ("thing",)

    def start(self, stored: bytes | None) -> Started[State]:
        return Started(() if stored is None else tuple(json.loads(stored)))

    def restore(self, state: State, recorded: Recorded) -> Restored[State]:
        return Restored(tuple(sorted({*state, recorded.pod_uid})))

    def missing(self, state: State, pod: Pod, finished: frozenset[str]) -> tuple[Lost, ...]:
        return ()

    def encode(self, state: State) -> bytes:
        return json.dumps(state).encode()

    def topology_hints(
        self, state: State, pod: Pod, container: Container, sources: Sources
    ) -> Hinted[State]:
        return Hinted(state, {"thing": (HINT,)})

    def pod_topology_hints(self, state: State, pod: Pod, sources: Sources) -> Hinted[State]:
        hints: ProviderHints = {"thing": ()}
        return Hinted(state, hints)

    async def allocate(
        self,
        state: State,
        pod: Pod,
        container: Container,
        affinity: TopologyHint,
        sources: Sources,
        *,
        dry_run: bool = False,
    ) -> Allocated[State]:
        return await self.allocate_pod(state, pod, affinity, sources)

    async def allocate_pod(
        self, state: State, pod: Pod, affinity: TopologyHint, sources: Sources
    ) -> Allocated[State]:
        if pod.uid == "refused":
            return Allocated(state, AllocationFailure("nothing left"))
        return Allocated(tuple(sorted({*state, pod.uid})))

    async def seal(self, state: State, pod: Pod) -> Allocated[State]:
        self.sealed.append(pod.uid)
        return Allocated(state, self.seal_failure)

    def release(self, state: State, pod_uid: PodUid) -> State:
        return tuple(each for each in state if each != pod_uid)

    def remove_container(self, state: State, pod_uid: PodUid, container: str) -> State:
        return self.release(state, pod_uid) if container == "c" else state

    def add_container(self, state: State, pod: Pod, container: Container) -> State:
        return state

    def remove_stale(self, state: State, sources: Sources) -> State:
        return state

    def pods(self, state: State) -> frozenset[PodUid]:
        return frozenset(PodUid(each) for each in state)

    def shared_cpus(self, state: State) -> CpuSet | None:
        return CpuSet.of(range(8)) - CpuSet.of(range(len(state)))

    def holdings(self, state: State, pod_uid: PodUid) -> tuple[Holding, ...]:
        return (Holding(container="c", cpus=CpuSet.of((1,))),) if pod_uid in state else ()

    def pod_holding(self, state: State, pod_uid: PodUid) -> PodHolding:
        return PodHolding()

    async def prepare_container(
        self,
        state: State,
        pod: Pod,
        container: Container,
        *,
        affinity: TopologyHint = NO_HINT,
        sources: Sources = NO_SOURCES,
    ) -> tuple[State, Preparation]:
        return state, Preparation()

    def facts(
        self, state: State, pod: Pod, container: Container | None
    ) -> tuple[ResourceFacts, ...]:
        return ()


@asynccontextmanager
async def ledger_in(
    directory: Path, engine: ListEngine | None = None, cleanup: Cleanup[State] | None = None
) -> AsyncIterator[tuple[Ledger[State], Database]]:
    """A ledger over a state file in `directory`; opened again, it is a restarted provider."""
    engine = engine or ListEngine()
    database = Database.open(directory, "list", report=print)
    try:
        store = ProviderStore(database, engine.name, durable=True)
        yield (
            await open_ledger(engine, store, cleanup or EagerCleanup(engine), recorded=True),
            database,
        )
    finally:
        await database.close()


async def prepare(ledger: Ledger[State], number: int, uid: str) -> None:
    """Take an admission as far as its prepared part."""
    made = pod(uid)
    await ledger.hints(admission(number), made, made.containers[0])
    outcome = await ledger.allocate(
        admission(number), made, made.containers[0], HINT, last=True, dry_run=False
    )
    assert outcome.failure is None


async def commit(ledger: Ledger[State], number: int, uid: str) -> None:
    """Take an admission to its end."""
    await prepare(ledger, number, uid)
    await ledger.commit(admission(number))


async def told(ledger: Ledger[State], *committed: int, active: tuple[str, ...] = ()) -> State:
    """Hand the ledger a picture; its state then."""
    await ledger.reconcile(
        {PodUid(uid): frozenset({"i", "c"}) for uid in active},
        frozenset(admission(number) for number in committed),
        ready=True,
        running=frozenset(),
    )
    return ledger.state
