"""What an API server is asked, over real HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from numalign_agent.api.errors import Refused
from numalign_agent.nri.api_calls import PodApi
from numalign_agent.pod import AgentPod


class Posted:
    """An API server that remembers what was posted, and answers with one status."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.posts: list[tuple[str, Any]] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.posts.append((request.path, await request.json()))
        body = {"kind": "Status", "code": self.status, "message": "as the test wants"}
        return web.json_response(body, status=self.status)


@asynccontextmanager
async def posted(tmp_path: Path, status: int) -> AsyncIterator[tuple[Posted, PodApi]]:
    server = Posted(status)
    application = web.Application()
    application.router.add_post("/{path:.*}", server.answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
                "users": [{"name": "u", "user": {"token": "t"}}],
            }
        )
    )
    api = await PodApi.connected(kubeconfig, "", "node")
    try:
        yield server, api
    finally:
        await api.close()
        await runner.cleanup()


@pytest.mark.parametrize(
    ("status", "there"),
    [
        pytest.param(201, True, id="evicted"),
        pytest.param(404, False, id="gone"),
        pytest.param(409, False, id="another-of-its-name"),
    ],
)
async def test_evictions(tmp_path: Path, status: int, there: bool) -> None:
    async with posted(tmp_path, status) as (server, api):
        found = await api.evict("default", "web", "u1")

    assert found is there
    ((path, body),) = server.posts
    assert path == "/api/v1/namespaces/default/pods/web/eviction"
    assert (body["apiVersion"], body["kind"]) == ("policy/v1", "Eviction")
    assert body["deleteOptions"]["preconditions"] == {"uid": "u1"}


async def test_an_eviction_that_a_budget_does_not_allow(tmp_path: Path) -> None:
    async with posted(tmp_path, 429) as (_, api):
        with pytest.raises(Refused, match="429"):
            await api.evict("default", "web", "u1")


async def test_an_event_is_shown(tmp_path: Path) -> None:
    pod = AgentPod({"metadata": {"uid": "u1", "name": "web", "namespace": "default"}})
    async with posted(tmp_path, 201) as (server, api):
        await api.warn(pod, "ContainerUnpinned", "x" * 2000)

    ((path, event),) = server.posts
    assert path == "/api/v1/namespaces/default/events"
    assert event["involvedObject"]["uid"] == "u1"
    assert (event["type"], event["reason"]) == ("Warning", "ContainerUnpinned")
    assert len(event["message"]) == 1024
    assert event["metadata"]["generateName"] == "web."
    assert event["source"] == {"component": "numalign-agent", "host": "node"}
