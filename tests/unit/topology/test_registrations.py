"""Which registrations are kept for the next process, and which of them it takes up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from tests.unit.topology.fake_provider import FakeProvider, handle_to
from tests.unit.topology.test_registry import unheard

from numalign.errors import FieldViolation, InvalidInput, StateNotWritten
from numalign.store.database import Database
from numalign.store.registered_providers import RegisteredProviders
from numalign.topology.provider_handle import ProviderHandle
from numalign.topology.registrations import Registrations
from numalign.topology.registry import ProviderRegistry
from numalign.topology.turnstile import Turnstile
from numalign.v1 import topology_pb2 as tm


def asked(name: str) -> tm.RegisterHintProviderRequest:
    return tm.RegisterHintProviderRequest(name=name, endpoint=f"unix:///run/{name}.sock")


class Process:
    """A Topology Manager that has the provider `listed` by its configuration."""

    def __init__(self, database: Database) -> None:
        self.not_allowed: set[str] = set()
        self._database = database
        self.registry = ProviderRegistry([handle_to(FakeProvider("listed"))], unheard)
        self.registrations = Registrations(
            self.registry,
            Turnstile(8),
            RegisteredProviders(database, "boot"),
            self.handle,
        )

    def handle(self, request: tm.RegisterHintProviderRequest) -> ProviderHandle:
        if request.name in self.not_allowed:
            raise InvalidInput(FieldViolation("endpoint", "must be below /run"))
        return handle_to(FakeProvider(request.name), introduced=False)

    @contextmanager
    def nothing_written(self) -> Iterator[None]:
        """The disk is full as long as this lasts."""

        def fails(*_: object, **__: object) -> None:
            raise StateNotWritten("topology.db", "full")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self._database, "write", fails)
            yield

    @property
    def names(self) -> list[str]:
        return [handle.name for handle in self.registry.handles]


@asynccontextmanager
async def process(directory: Path) -> AsyncIterator[Process]:
    database = Database.open(directory, "topology", report=print)
    running = Process(database)
    yield running
    await running.registry.close()
    await database.close()


async def test_the_next_process_knows_who_has_registered(tmp_path: Path) -> None:
    async with process(tmp_path) as first:
        for name in ("a", "b", "listed"):
            await first.registrations.register(asked(name))
        assert first.names == ["a", "b", "listed"]
        await first.registrations.deregister("a")
    async with process(tmp_path) as second:
        await second.registrations.recall()
        assert second.names == ["listed", "b"]
        assert [handle.recalled for handle in second.registry.handles] == [False, True]


@pytest.mark.parametrize("known", [False, True], ids=["new", "known"])
async def test_a_registration_that_cannot_be_kept_is_none(tmp_path: Path, known: bool) -> None:
    async with process(tmp_path) as one:
        if known:
            await one.registrations.register(asked("a"))
        with one.nothing_written(), pytest.raises(StateNotWritten):
            await one.registrations.register(asked("a"))
        assert one.names == (["listed", "a"] if known else ["listed"])
        await one.registrations.register(asked("a"))
        assert one.names == ["listed", "a"]


async def test_who_cannot_be_forgotten_can_be_forgotten_later(tmp_path: Path) -> None:
    async with process(tmp_path) as one:
        await one.registrations.register(asked("a"))
        with one.nothing_written(), pytest.raises(StateNotWritten):
            await one.registrations.deregister("a")
        assert one.names == ["listed", "a"]
        await one.registrations.deregister("a")
        assert one.names == ["listed"]
    async with process(tmp_path) as second:
        await second.registrations.recall()
        assert second.names == ["listed"]


async def test_one_that_is_listed_by_now_is_as_it_is_listed(tmp_path: Path) -> None:
    database = Database.open(tmp_path, "topology", report=print)
    kept = RegisteredProviders(database, "boot")
    await kept.keep("listed", asked("listed").SerializeToString())
    process = Process(database)
    await process.registrations.recall()
    assert process.names == ["listed"]
    assert await kept.known() == ()
    await database.close()


async def test_one_whose_socket_is_not_allowed_is_left_out_as_long_as_it_is_not(
    tmp_path: Path,
) -> None:
    async with process(tmp_path) as first:
        await first.registrations.register(asked("a"))
    async with process(tmp_path) as second:
        second.not_allowed.add("a")
        await second.registrations.recall()
        assert second.names == ["listed"]
    async with process(tmp_path) as third:
        await third.registrations.recall()
        assert third.names == ["listed", "a"]
