"""From reports to the books: in order, together, and never in the middle of a decision."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from tests.unit.device.device_world import GPU, active, container, device, engine, hint, ids, pod

from numalign.device.capacity import STOP_GRACE_SECONDS
from numalign.device.engine import DeviceEngine
from numalign.device.inventory import PluginOptions
from numalign.device.plugin_host.changes import (
    Disconnected,
    GracePassed,
    InventoryChange,
    Listed,
    Registered,
    WaitedOut,
)
from numalign.device.plugin_host.inventory_feed import InventoryFeed
from numalign.device.state import DeviceState
from numalign.errors import StateError
from numalign.model.ids import PodUid
from numalign.provider.ledger import Ledger


@dataclass
class Books:
    """Stands for the ledger: a lock, a state, and a store that may refuse."""

    state: DeviceState
    free: asyncio.Lock = field(default_factory=asyncio.Lock)
    changes: int = 0
    refuses: bool = False

    async def facts_changed(self, noted: Callable[[DeviceState], DeviceState]) -> None:
        async with self.free:
            self.state = noted(self.state)
            self.changes += 1
            if self.refuses:
                raise StateError("disk full")


@dataclass
class World:
    engine: DeviceEngine
    books: Books
    feed: InventoryFeed
    told: list[frozenset[PodUid]]


@asynccontextmanager
async def feeding() -> AsyncIterator[World]:
    made = engine()
    books = Books(made.start(None).state)
    told: list[frozenset[PodUid]] = []
    feed = InventoryFeed(made, cast("Ledger[Any]", books), told.append)
    task = asyncio.create_task(feed.run())
    try:
        yield World(made, books, feed, told)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def put(world: World, *changes: InventoryChange) -> None:
    for change in changes:
        world.feed.put(change)
    await world.feed.settled()


async def test_what_came_together_is_one_change_of_the_books() -> None:
    async with feeding() as world:
        await put(
            world,
            Registered(GPU, PluginOptions()),
            Listed(GPU, (device("a", 0),)),
            Listed(GPU, (device("b", 0),)),
        )

        assert world.books.changes == 1
        assert world.engine.inventory.of(GPU).healthy == frozenset(ids("b"))
        assert world.books.state.served == (GPU,)


async def test_a_decision_sees_no_change() -> None:
    async with feeding() as world:
        async with world.books.free:
            world.feed.put(Listed(GPU, (device("a", 0),)))
            await asyncio.sleep(0.02)
            during = world.engine.inventory.of(GPU).healthy
        await world.feed.settled()

        assert during is None
        assert world.engine.inventory.of(GPU).healthy == frozenset(ids("a"))


async def test_an_end_is_not_stored_but_a_list_is() -> None:
    async with feeding() as world:
        await put(world, Registered(GPU, PluginOptions()), Listed(GPU, (device("a", 0),)))
        written = world.books.state.written
        await put(world, Disconnected(GPU, 1.0))

        assert world.books.state.written is written
        assert written.served == (GPU,)
        assert world.engine.inventory.of(GPU).healthy == frozenset()


async def test_grace_is_kept_and_what_passes_it_is_stored() -> None:
    async with feeding() as world:
        await put(
            world,
            Registered(GPU, PluginOptions()),
            Listed(GPU, (device("a", 0),)),
            Disconnected(GPU, 1.0),
            GracePassed(1.0 + STOP_GRACE_SECONDS),
        )
        kept = world.engine.inventory.served()
        await put(world, GracePassed(1.1 + STOP_GRACE_SECONDS))

        assert kept == (GPU,)
        assert world.engine.inventory.served() == ()
        assert world.books.state.written.served == ()


async def test_pods_that_hold_a_device_that_flipped_are_told_of() -> None:
    async with feeding() as world:
        await put(world, Registered(GPU, PluginOptions()), Listed(GPU, (device("a", 0),)))
        asking = pod(container(gpu=1), uid="holder")
        taken = await world.engine.allocate(
            world.books.state, asking, asking.containers[0], hint(0), active(asking)
        )
        world.books.state = taken.state
        await put(world, Listed(GPU, (device("a", 0, health="Sick"), device("b", 0))))
        await put(world, Listed(GPU, (device("b", 0),)))

        assert world.told == [frozenset({"holder"})]


async def test_a_store_that_refuses_does_not_stop_the_feed() -> None:
    async with feeding() as world:
        world.books.refuses = True
        await put(world, Listed(GPU, (device("a", 0),)))
        world.books.refuses = False
        await put(world, Listed(GPU, (device("b", 0),)), WaitedOut())

        assert world.engine.inventory.of(GPU).healthy == frozenset(ids("b"))
