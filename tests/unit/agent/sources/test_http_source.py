"""A URL that is asked again and again, over a socket (CFG-10, CFG-13)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from tests.unit.agent.manifests.texts import manifest
from tests.unit.agent.sources.collecting import running

from numalign_agent.sources.http.source import HttpSource


class Site:
    """Answers every request with `answer`."""

    def __init__(self) -> None:
        self.answer: tuple[int, bytes] = (200, b"")
        self.headers: list[tuple[str, str]] = []
        self.asked = 0
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        self.asked += 1
        self.headers = list(request.headers.items())
        status, body = self.answer
        return web.Response(status=status, body=body)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    made = Site()
    application = web.Application()
    application.router.add_get("/pods", made.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    listening = web.TCPSite(runner, "127.0.0.1", 0)
    await listening.start()
    host, port = runner.addresses[0][:2]
    made.url = f"http://{host}:{port}/pods"
    yield made
    await runner.cleanup()


async def test_pods_stay_while_the_url_fails(site: Site) -> None:
    site.answer = (200, json.dumps(manifest()).encode())
    source = HttpSource(site.url, "n", {"X-Token": ("a", "b")}, every=0.02)

    async with running(source) as delivered:
        await delivered.until(lambda: delivered.names == ["web-n"])
        assert [value for name, value in site.headers if name == "X-Token"] == ["a", "b"]

        site.answer = (500, b"")
        asked = site.asked
        await delivered.until(lambda: site.asked > asked + 5)
        assert delivered.names == ["web-n"]
        assert source.problems() == {site.url: f"{site.url}: 500 Internal Server Error"}

        site.answer = (200, json.dumps(manifest(metadata={"name": "db"})).encode())
        await delivered.until(lambda: delivered.names == ["db-n"])
        assert source.problems() == {}


async def test_a_url_that_nobody_answers() -> None:
    server = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    source = HttpSource(f"http://127.0.0.1:{port}/", "n", every=0.02)

    async with running(source) as delivered:
        await delivered.until(lambda: bool(source.problems()))
        assert delivered.sets == []


async def test_a_url_that_is_no_url() -> None:
    source = HttpSource("pods://x", "n", every=0.02)

    async with running(source) as delivered:
        await delivered.until(lambda: bool(source.problems()))
        assert delivered.sets == []
