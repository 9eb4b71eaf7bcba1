"""The ledger exchanges its engine between admissions, gives back, and begins anew if it must."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.cpu.cpu_machines import T8, engine, pod

from numalign.cpu.engine import CpuEngine
from numalign.cpu.state import CpuState
from numalign.cpu.strategies import KUBELET, SAFE
from numalign.errors import StartError
from numalign.model.cpu_set import CpuSet
from numalign.model.hint import NO_HINT
from numalign.model.ids import AdmissionId, PodUid
from numalign.model.pod import Pod
from numalign.provider.cleanup import EagerCleanup
from numalign.provider.engine import Lost, Recorded
from numalign.provider.ledger import Ledger
from numalign.provider.opening import open_ledger
from numalign.provider.values import Holding
from numalign.store.database import Database
from numalign.store.provider_store import ProviderStore

ID = AdmissionId("1")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[ProviderStore]:
    database = Database.open(tmp_path, "cpu", report=print)
    yield ProviderStore(database, "cpu", durable=True)
    await database.close()


async def ledger_of(by: CpuEngine, store: ProviderStore) -> Ledger[CpuState]:
    return await open_ledger(by, store, EagerCleanup(by), recorded=True)


async def prepare(ledger: Ledger[CpuState], one: Pod, admission_id: AdmissionId = ID) -> None:
    outcome = await ledger.allocate(
        admission_id, one, one.containers[0], NO_HINT, last=True, dry_run=False
    )
    assert outcome.failure is None


async def test_an_engine_is_exchanged_when_no_admission_is_open(store: ProviderStore) -> None:
    ledger = await ledger_of(engine(T8, strategies=SAFE), store)
    other = engine(T8, "0,1", strategies=SAFE)
    await prepare(ledger, pod("p", {"c": "2"}))

    change = asyncio.ensure_future(ledger.change_engine(other))
    await asyncio.sleep(0.01)
    waited = not change.done()
    await ledger.commit(ID)
    reports = await change

    assert waited
    assert ledger.engine is other
    assert ledger.fitted == 1
    assert reports[0] == 'pod p, container c: CPUs "1,5" are dropped: "1" reserved now'
    assert ledger.reports == reports
    assert ledger.state.assignments == {}
    assert other.start((await store.load()).payload).state == ledger.state


async def test_an_abort_of_what_was_only_tried_lets_it_through(store: ProviderStore) -> None:
    ledger = await ledger_of(engine(T8, strategies=SAFE), store)
    other = engine(T8, "0,1", strategies=SAFE)
    one = pod("p", {"c": "2"})
    await ledger.hints(ID, one, one.containers[0])

    change = asyncio.ensure_future(ledger.change_engine(other))
    await asyncio.sleep(0.01)
    waited = not change.done()
    await ledger.abort(ID, keep=False)
    await change

    assert waited
    assert str(ledger.state.default) == "0-7"


async def test_an_engine_that_refuses_the_books_changes_nothing(store: ProviderStore) -> None:
    by = engine(T8, strategies=KUBELET)
    ledger = await ledger_of(by, store)
    before = ledger.state
    other = engine(T8, "", policy="none", strategies=KUBELET)

    with pytest.raises(StartError, match="differs from state checkpoint policy"):
        ledger.fits(other)
    with pytest.raises(StartError, match="differs from state checkpoint policy"):
        await ledger.change_engine(other)

    assert ledger.engine is by
    assert ledger.state is before
    assert ledger.fitted == 0


async def test_what_is_given_back_is_on_disk(store: ProviderStore) -> None:
    by = engine(T8, strategies=SAFE)
    ledger = await ledger_of(by, store)
    one = pod("p", {"a": "2", "b": "1"})
    recorded = Recorded(
        pod_uid=one.uid,
        holdings=(Holding(container="a", cpus=CpuSet.parse("1,5")),),
        pod=one,
    )

    lost = await ledger.restore([recorded])

    assert lost == (
        (one.uid, Lost(container="b", message="not pinned: asks for 1 exclusive CPUs, has none")),
    )
    assert by.start((await store.load()).payload).state == ledger.state
    assert by.pods(ledger.state) == {one.uid}


async def test_prepared_parts_stay_where_nobody_knows_what_was_committed(
    store: ProviderStore,
) -> None:
    by = engine(T8, strategies=SAFE)
    await prepare(await ledger_of(by, store), pod("p", {"c": "2"}))
    ledger = await ledger_of(by, store)

    await ledger.reconcile({}, frozenset(), ready=False, running=frozenset(), record_lost=True)

    assert by.pods(ledger.state) == {PodUid("p")}
    assert (await store.load()).prepared == ()


async def test_a_state_that_cannot_be_read_is_reported(store: ProviderStore) -> None:
    await store.save(b"no state", synced=True)
    by = engine(T8, strategies=SAFE)

    ledger = await ledger_of(by, store)

    assert ledger.state == by.start(None).state
    assert ledger.reports[0].startswith("set aside: the stored CPU state cannot be read")
