"""Which hint providers that were found by their sockets are taken in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from numalign.errors import AlreadyExists, InvalidInput
from numalign.plugins.probe import Found
from numalign.plugins.types import HINT_PROVIDER_TYPE
from numalign.plugins.watcher import PluginRefused
from numalign.process.watched_providers import HintProviderHandler
from numalign.topology.provider_handle import ProviderDown
from numalign.v1 import topology_pb2 as tm


def found(name: str = "ways", *versions: str) -> Found:
    return Found(
        type=HINT_PROVIDER_TYPE, name=name, endpoint=Path("/run/p/w.sock"), versions=versions
    )


class World:
    def __init__(self) -> None:
        self.asked: list[tm.RegisterHintProviderRequest] = []
        self.fails: Exception | None = None
        self.handler = HintProviderHandler(self._register)

    async def _register(self, request: tm.RegisterHintProviderRequest) -> Any:
        self.asked.append(request)
        if self.fails is not None:
            raise self.fails


@pytest.mark.parametrize(
    ("plugin", "why"),
    [
        pytest.param(found("", "v1"), "name: Required value", id="no name"),
        pytest.param(found("ways"), '"v1" is not among them (none)', id="no version"),
        pytest.param(
            found("ways", "v2", "v3"), r'"v1" is not among them (v2, v3)', id="other versions"
        ),
    ],
)
def test_what_is_refused_at_sight(plugin: Found, why: str) -> None:
    with pytest.raises(PluginRefused) as refused:
        World().handler.validate(plugin)

    assert why in str(refused.value)


async def test_one_is_registered_where_it_was_found() -> None:
    world = World()
    world.handler.validate(found("ways", "v1"))
    await world.handler.register(found("ways", "v1"))
    await world.handler.deregister(found("ways", "v1"))

    assert world.asked == [tm.RegisterHintProviderRequest(name="ways", endpoint="/run/p/w.sock")]


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(AlreadyExists('name: provider "ways" is registered at x'), id="taken"),
        pytest.param(InvalidInput(), id="somewhere else"),
        pytest.param(ProviderDown("ways", "UNAVAILABLE"), id="down"),
    ],
)
async def test_one_that_cannot_be_taken_in_is_told_why(error: Exception) -> None:
    world = World()
    world.fails = error
    with pytest.raises(PluginRefused) as refused:
        await world.handler.register(found("ways", "v1"))

    assert str(refused.value) == str(error)
