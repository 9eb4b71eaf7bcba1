"""Containers that somebody else has moved are put back, and it is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from numalign_agent.placements.keeper import NOT_PLACED, UNPINNED, PlacementKeeper
from numalign_agent.runners.port import Placement, RunnerFailed

PLACE = Placement(cpus="2-3", exclusive_cpus=True, mems="0")
MOVED = "cpuset.cpus.effective is 0-7 after 2-3 was written"


@dataclass
class Runner:
    """Plays the runner: what it finds wrong, or why it cannot put it right, by container."""

    found: dict[str, str | RunnerFailed] = field(default_factory=dict)
    looked: list[tuple[str, Placement]] = field(default_factory=list)

    async def put_back(self, container_id: str, placement: Placement) -> str:
        self.looked.append((container_id, placement))
        found = self.found.pop(container_id, "")
        if isinstance(found, RunnerFailed):
            raise found
        return found

    async def update_placement(self, container_id: str, placement: Placement) -> None:
        """Nothing is wrong with it."""


class World:
    def __init__(self) -> None:
        self.runner = Runner()
        self.told: list[tuple[str, ...]] = []
        playing: Any = self.runner
        self.keeper = PlacementKeeper(playing, lambda *words: self.told.append(words))


@pytest.fixture
async def world() -> World:
    world = World()
    await world.keeper.starting("id", "u", "c", PLACE)
    return world


async def test_a_container_in_its_place_is_nothing_to_tell(world: World) -> None:
    await world.keeper.put_back()

    assert world.runner.looked == [("id", PLACE)]
    assert world.told == []


async def test_one_that_was_moved_is_told_of(world: World) -> None:
    world.runner.found["id"] = MOVED
    await world.keeper.put_back()
    await world.keeper.put_back()

    assert world.told == [("u", "c", UNPINNED, MOVED)]


async def test_one_that_cannot_be_put_back_is_told_of_once_for_each_reason(world: World) -> None:
    for why in ("refused (EINVAL)", "refused (EINVAL)", "refused (EBUSY)", "refused (EBUSY)"):
        world.runner.found["id"] = RunnerFailed(why)
        await world.keeper.put_back()
    await world.keeper.put_back()
    world.runner.found["id"] = RunnerFailed("refused (EBUSY)")
    await world.keeper.put_back()

    assert world.told == [
        ("u", "c", NOT_PLACED, "refused (EINVAL)"),
        ("u", "c", NOT_PLACED, "refused (EBUSY)"),
        ("u", "c", NOT_PLACED, "refused (EBUSY)"),
    ]


async def test_one_that_cannot_be_put_back_stands_in_no_others_way(world: World) -> None:
    await world.keeper.starting("next", "v", "d", Placement(cpus="4"))
    world.runner.found |= {"id": RunnerFailed("refused (EINVAL)"), "next": MOVED}
    await world.keeper.put_back()

    assert world.told == [("u", "c", NOT_PLACED, "refused (EINVAL)"), ("v", "d", UNPINNED, MOVED)]


async def test_who_has_ended_is_not_looked_for(world: World) -> None:
    world.keeper.ended("id")
    await world.keeper.put_back()

    assert world.runner.looked == []
