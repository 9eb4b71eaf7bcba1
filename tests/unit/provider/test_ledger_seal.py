"""The ledger between choosing and what cannot be undone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.device.device_world import GPU, SAFE, Plugins, container, device, engine, hint, pod

from numalign.device.engine import DeviceEngine
from numalign.device.ports import PluginError
from numalign.device.state import DeviceState
from numalign.errors import Unavailable
from numalign.model.ids import AdmissionId, PodUid
from numalign.provider.cleanup import EagerCleanup
from numalign.provider.engine import Allocated
from numalign.provider.ledger import Ledger
from numalign.provider.opening import open_ledger
from numalign.store.database import Database
from numalign.store.provider_store import ProviderStore

ONE, TWO = AdmissionId("1"), AdmissionId("2")
ASKING = pod(container(gpu=1))


class NotingStore(ProviderStore):
    """Notes whether parts were synced."""

    synced: list[bool]

    async def prepare(
        self,
        admission_id: AdmissionId,
        pod_uid: PodUid,
        before: bytes | None,
        after: bytes,
        *,
        synced: bool = True,
    ) -> None:
        self.synced.append(synced)
        await super().prepare(admission_id, pod_uid, before, after, synced=synced)


class World:
    """A device provider's books over a real store, and its plugins."""

    def __init__(self, database: Database) -> None:
        self.plugins = Plugins()
        self.engine: DeviceEngine = engine(device("a", 0), plugins=self.plugins, strategies=SAFE)
        self.store = NotingStore(database, "device", durable=True)
        self.store.synced = []

    async def open(self, *, recorded: bool = True) -> Ledger[DeviceState]:
        return await open_ledger(
            self.engine, self.store, EagerCleanup(self.engine), recorded=recorded
        )

    async def allocate(
        self, ledger: Ledger[DeviceState], *, seal_later: bool = True
    ) -> Allocated[DeviceState]:
        return await ledger.allocate(
            ONE,
            ASKING,
            ASKING.containers[0],
            hint(0),
            last=True,
            dry_run=False,
            seal_later=seal_later,
        )


@pytest.fixture(name="world")
async def world_fixture(tmp_path: Path) -> AsyncIterator[World]:
    reports: list[str] = []
    database = Database.open(tmp_path, "device", report=reports.append)
    yield World(database)
    await database.close()
    assert reports == []


async def test_left_unsealed_nothing_is_prepared_and_nobody_told(world: World) -> None:
    ledger = await world.open()

    outcome = await world.allocate(ledger)

    assert outcome.unsealed
    assert ledger.state.records == {}
    assert (await world.store.load()).prepared == ()
    assert world.plugins.told == []


async def test_sealing_tells_the_plugin_and_prepares(world: World) -> None:
    ledger = await world.open()
    await world.allocate(ledger)

    outcome = await ledger.seal(ONE, ASKING)

    assert outcome.failure is None
    assert [call.call for call in outcome.plugin_calls] == ["Allocate"]
    assert world.plugins.told == [("allocate", GPU, ("a",))]
    assert [part.admission_id for part in (await world.store.load()).prepared] == [ONE]
    assert "pod" in ledger.state.records


async def test_without_being_asked_to_wait_it_is_sealed_at_once(world: World) -> None:
    ledger = await world.open()

    outcome = await world.allocate(ledger, seal_later=False)

    assert not outcome.unsealed
    assert world.plugins.told == [("allocate", GPU, ("a",))]


async def test_an_abort_after_sealing_frees_the_device(world: World) -> None:
    ledger = await world.open()
    await world.allocate(ledger)
    await ledger.seal(ONE, ASKING)

    await ledger.abort(ONE, keep=False)

    assert ledger.state.records == {}
    assert ledger.state.allocated.get(GPU, frozenset()) == frozenset()


async def test_a_seal_that_fails_leaves_nothing_prepared(world: World) -> None:
    world.plugins.allocate_error[GPU] = PluginError("out of order")
    ledger = await world.open()
    await world.allocate(ledger)

    outcome = await ledger.seal(ONE, ASKING)
    await ledger.abort(ONE, keep=False)

    assert outcome.failure is not None
    assert outcome.failure.message == "out of order"
    assert (await world.store.load()).prepared == ()
    assert ledger.state.records == {}


@pytest.mark.parametrize(
    "admission", [pytest.param(TWO, id="another"), pytest.param(ONE, id="over")]
)
async def test_only_an_open_admission_can_be_sealed(world: World, admission: AdmissionId) -> None:
    ledger = await world.open()
    await world.allocate(ledger)
    if admission == ONE:
        await ledger.abort(ONE, keep=False)

    with pytest.raises(Unavailable, match="is not open"):
        await ledger.seal(admission, ASKING)

    assert world.plugins.told == []


@pytest.mark.parametrize(
    ("effects", "recorded", "synced"),
    [
        pytest.param(False, True, False, id="the-record-gives-it-back"),
        pytest.param(False, False, True, id="the-record-is-not-believed"),
        pytest.param(True, True, True, id="a-plugin-was-told"),
    ],
)
@pytest.mark.parametrize("seal_later", [True, False], ids=["sealed-later", "sealed-at-once"])
async def test_synced_is_what_the_record_cannot_give_back(
    world: World, effects: bool, recorded: bool, synced: bool, seal_later: bool
) -> None:
    world.plugins.has_effects = effects
    ledger = await world.open(recorded=recorded)

    outcome = await world.allocate(ledger, seal_later=seal_later)
    if outcome.unsealed:
        await ledger.seal(ONE, ASKING)

    assert world.store.synced == [synced]
