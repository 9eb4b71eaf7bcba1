"""Pods of an API server, over a real HTTP server and with the official client (CFG-14)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.integration.fake_api.server import FakeApiServer
from tests.unit.agent.sources.collecting import running

from numalign_agent.api.reflector import Pace
from numalign_agent.api.server import ApiServer, connect
from numalign_agent.sources.api import ApiSource

PACE = Pace(watch=60, idle=30, first=0.01, longest=0.2)


def source(api: ApiServer, pace: Pace = PACE) -> ApiSource:
    known = asyncio.Event()
    known.set()
    return ApiSource(api, "n", known, pace)


def bound(fake: FakeApiServer, name: str, node: str = "n", **spec: Any) -> dict[str, Any]:
    pod = {"metadata": {"name": name}, "spec": {"nodeName": node, "newField": {"x": 1}, **spec}}
    return fake.store.create("pods", "default", pod)


async def test_pods_of_this_node_as_the_server_has_them(
    fake: FakeApiServer, api: ApiServer
) -> None:
    bound(fake, "mine")
    bound(fake, "other", "elsewhere")
    async with running(source(api)) as delivered:
        await delivered.until(lambda: delivered.names == ["mine"])
        # Fields that no model of the client knows come through.
        assert delivered.sets[-1][0].spec["newField"] == {"x": 1}

        bound(fake, "late")
        await delivered.until(lambda: delivered.names == ["late", "mine"])
        fake.store.patch("pods", "default", "late", {"metadata": {"labels": {"a": "b"}}})
        await delivered.until(lambda: any(p.labels == {"a": "b"} for p in delivered.sets[-1]))
        fake.store.delete("pods", "default", "mine", {})
        await delivered.until(lambda: any(p.deletion_timestamp for p in delivered.sets[-1]))
        fake.store.delete("pods", "default", "mine", {"gracePeriodSeconds": 0})
        await delivered.until(lambda: delivered.names == ["late"])

    assert sum("watch=true" not in request for request in fake.requests) == 1
    assert all("fieldSelector=spec.nodeName%3Dn" in request for request in fake.requests)


async def test_no_pods_are_delivered_too(fake: FakeApiServer, api: ApiServer) -> None:
    """Trap 2."""
    async with running(source(api)) as delivered:
        await delivered.until(lambda: delivered.names == [])


async def test_a_long_list_comes_in_pages(fake: FakeApiServer, api: ApiServer) -> None:
    for index in range(1, 1202):
        bound(fake, f"p{index}")
    async with running(source(api)) as delivered:
        await delivered.until(lambda: bool(delivered.sets))
        assert len(delivered.sets[-1]) == 1201


async def test_a_connection_that_breaks_is_taken_up_where_it_was(
    fake: FakeApiServer, api: ApiServer
) -> None:
    bound(fake, "one")
    async with running(source(api)) as delivered:
        await delivered.until(lambda: delivered.names == ["one"] and fake.watching == 1)
        fake.drop_watches()
        bound(fake, "two")
        await delivered.until(lambda: delivered.names == ["one", "two"])

    assert sum("watch=true" not in request for request in fake.requests) == 1


async def test_what_is_too_old_is_listed_anew(fake: FakeApiServer, api: ApiServer) -> None:
    bound(fake, "one")
    fake.bookmark_every = 60
    async with running(source(api)) as delivered:
        await delivered.until(lambda: delivered.names == ["one"] and fake.watching == 1)
        fake.store.delete("pods", "default", "one", {"gracePeriodSeconds": 0})
        bound(fake, "two")
        fake.store.forget_history()
        fake.drop_watches()
        await delivered.until(lambda: delivered.names == ["two"])


async def test_a_bookmark_saves_a_list(fake: FakeApiServer, api: ApiServer) -> None:
    bound(fake, "one")
    fake.bookmark_every = 0.01
    async with running(source(api)) as delivered:
        await delivered.until(lambda: delivered.names == ["one"] and fake.watching == 1)
        for index in range(5):
            bound(fake, f"other{index}", "elsewhere")
        version = fake.store.version
        await delivered.until(lambda: fake.bookmarked == version)
        fake.store.forget_history()
        fake.drop_watches()
        await delivered.until(
            lambda: any(f"resourceVersion={version}" in request for request in fake.requests)
        )

    assert sum("watch=true" not in request for request in fake.requests) == 1


async def test_events_that_trickle_in(fake: FakeApiServer, api: ApiServer) -> None:
    fake.faults.piece = 40
    async with running(source(api)) as delivered:
        await delivered.until(lambda: delivered.names == [])
        bound(fake, "slow")
        await delivered.until(lambda: delivered.names == ["slow"])


async def test_a_silent_watch_is_given_up(fake: FakeApiServer, api: ApiServer) -> None:
    fake.faults.mute = True
    pace = Pace(watch=60, idle=0.2, first=0.01, longest=0.02)
    async with running(source(api, pace)) as delivered:
        await delivered.until(lambda: delivered.names == [] and fake.watching == 1)
        bound(fake, "unheard")
        asked = len(fake.requests)
        await delivered.until(lambda: len(fake.requests) > asked)
        fake.faults.mute = False
        await delivered.until(lambda: delivered.names == ["unheard"])


@pytest.mark.parametrize(
    "garbage",
    [
        pytest.param(b"\xff\n", id="no-json"),
        pytest.param(b"[]\n", id="no-object"),
        pytest.param(b'{"type": "ADDED"}\n', id="no-event"),
        pytest.param(b'{"type": "CHANGED", "object": {}}\n', id="unknown-event"),
        pytest.param(b'{"type": "ERROR", "object": {"code": 500}}\n', id="error"),
    ],
)
async def test_nonsense_in_a_watch(fake: FakeApiServer, api: ApiServer, garbage: bytes) -> None:
    bound(fake, "one")
    fake.faults.garbage = garbage
    async with running(source(api)) as delivered:
        await delivered.until(lambda: delivered.names == ["one"] and not fake.faults.garbage)
        bound(fake, "two")
        await delivered.until(lambda: delivered.names == ["one", "two"])


async def test_the_last_known_pods_stay_while_the_server_is_away(
    fake: FakeApiServer, api: ApiServer
) -> None:
    bound(fake, "one")
    made = source(api)
    async with running(made) as delivered:
        await delivered.until(lambda: delivered.names == ["one"] and fake.watching == 1)
        await fake.stop()
        await delivered.until(lambda: bool(made.problems()))
        sets = len(delivered.sets)
        fake.store.delete("pods", "default", "one", {"gracePeriodSeconds": 0})
        bound(fake, "two")
        assert len(delivered.sets) == sets

        await fake.start()
        await delivered.until(lambda: delivered.names == ["two"])
        assert made.problems() == {}


async def test_a_server_that_refuses(fake: FakeApiServer, tmp_path: Path) -> None:
    api = await connect(fake.kubeconfig(tmp_path / "kubeconfig", token="wrong"))
    made = source(api)
    async with running(made) as delivered:
        await delivered.until(lambda: bool(made.problems()))
        assert delivered.sets == []
        assert "401 Unauthorized" in next(iter(made.problems().values()))
    await api.close()


async def test_it_waits_for_the_node(fake: FakeApiServer, api: ApiServer) -> None:
    known = asyncio.Event()
    async with running(ApiSource(api, "n", known, PACE)) as delivered:
        await asyncio.sleep(0.05)
        assert fake.requests == []
        known.set()
        await delivered.until(lambda: delivered.names == [])
