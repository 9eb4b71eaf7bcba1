"""ResourceSlices of drivers that are gone, against a real HTTP server (DRA-9, DRA-10)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.integration.fake_api.server import FakeApiServer, fake_api_server

from numalign_agent.api.server import connect
from numalign_agent.claims.absent import AWAY_SECONDS
from numalign_agent.claims.slices import ResourceSlices

NODE = "node-a"


class World:
    def __init__(self, api: FakeApiServer) -> None:
        self.api = api
        self.connected: frozenset[str] | None = frozenset()
        self.now = 0.0
        self.slices: ResourceSlices

    def publish(self, name: str, driver: str, node: str = NODE) -> None:
        spec = {"driver": driver, "nodeName": node}
        self.api.store.create("resourceslices", "", {"metadata": {"name": name}, "spec": spec})

    def left(self) -> set[str]:
        return {item["metadata"]["name"] for item in self.api.store.all("resourceslices")}

    async def asked(self) -> frozenset[str] | None:
        return self.connected

    async def look(self, *connected: str, at: float) -> None:
        self.connected, self.now = frozenset(connected), at
        await self.slices.look()


@asynccontextmanager
async def world(directory: Path) -> AsyncIterator[World]:
    async with fake_api_server() as api:
        on = World(api)
        server = await connect(api.kubeconfig(directory / "kubeconfig"))
        on.slices = ResourceSlices(server, NODE, on.asked, lambda: on.now)
        try:
            yield on
        finally:
            await server.close()


async def test_slices_go_after_their_driver(tmp_path: Path) -> None:
    async with world(tmp_path) as on:
        on.publish("a-1", "a")
        on.publish("a-2", "a")
        on.publish("b-1", "b")
        on.publish("elsewhere", "a", node="node-b")
        await on.look("a", "b", at=0)
        await on.look("a", "b", at=AWAY_SECONDS)
        assert on.left() == {"a-1", "a-2", "b-1", "elsewhere"}

        await on.look("b", at=100)
        await on.look("b", at=100 + AWAY_SECONDS - 1)
        assert "a-1" in on.left()
        await on.look("b", at=100 + AWAY_SECONDS)
        assert on.left() == {"b-1", "elsewhere"}


async def test_at_the_start_those_go_whose_driver_does_not_come(tmp_path: Path) -> None:
    async with world(tmp_path) as on:
        on.publish("a-1", "a")
        on.publish("b-1", "b")
        await on.look(at=0)
        await on.look("b", at=10)
        assert on.left() == {"a-1", "b-1"}
        await on.look("b", at=AWAY_SECONDS)

        assert on.left() == {"b-1"}


async def test_an_api_server_that_is_away_is_asked_again(tmp_path: Path) -> None:
    async with world(tmp_path) as on:
        on.publish("a-1", "a")
        await on.look(at=0)
        on.api.faults.forbidden.add("DELETE resourceslices")
        await on.look(at=AWAY_SECONDS)
        assert "forbidden" in on.slices.problems()["resourceslices"]
        on.api.faults.forbidden.clear()
        await on.look(at=AWAY_SECONDS + 5)

        assert on.left() == set()
        assert on.slices.problems() == {}


async def test_nothing_goes_while_nobody_says_which_drivers_there_are(tmp_path: Path) -> None:
    async with world(tmp_path) as on:
        on.publish("a-1", "a")
        await on.look("a", at=0)
        on.connected, on.now = None, 1000.0
        await on.slices.look()

        assert on.left() == {"a-1"}
