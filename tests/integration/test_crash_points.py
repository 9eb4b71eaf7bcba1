"""Processes are killed inside admissions; what callers were told stays true.

Two hundred kills in five processes, and some with all services in one: at chosen places of an
admission, and at random times. After each the process is started again and the whole node is
judged: see `world`, `books` and `agents`.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tests.integration import kill_points as at
from tests.integration.world import PROVIDERS, World, open_world

SEED = int(os.environ.get("NUMALIGN_CRASH_SEED", "0")) or random.SystemRandom().randrange(1, 10**9)
"""Set the variable to repeat a run."""


@dataclass(frozen=True)
class Kill:
    """One kill. `place` None: after `delay` seconds."""

    process: str
    place: str | None
    count: int = 1
    delay: float | None = None


def at_places(
    choose: random.Random, processes: tuple[str, ...], places: tuple[str, ...], rounds: int
) -> list[Kill]:
    """`rounds` kills of every process at every place."""
    return [
        Kill(process, place, count=choose.choice((1, 1, 2, 3, 5)))
        for _ in range(rounds)
        for process in processes
        for place in places
    ]


def at_times(choose: random.Random, processes: tuple[str, ...], rounds: int) -> list[Kill]:
    """`rounds` kills of every process at a random time under load."""
    return [
        Kill(process, None, delay=choose.uniform(0.0, 0.06))
        for _ in range(rounds)
        for process in processes
    ]


PROVIDER_NAMES = tuple(service.value for service in PROVIDERS)
FIVE = (*PROVIDER_NAMES, "topology", "admission")


def kills_in_allocate(choose: random.Random) -> list[Kill]:
    return at_places(choose, PROVIDER_NAMES, at.ALLOCATE, 3)


def kills_in_prepare(choose: random.Random) -> list[Kill]:
    return at_places(choose, PROVIDER_NAMES, at.PREPARE, 4)


def kills_in_row(choose: random.Random) -> list[Kill]:
    return at_places(choose, ("topology",), at.ROW, 9)


def kills_after(choose: random.Random) -> list[Kill]:
    return (
        at_places(choose, PROVIDER_NAMES, at.SETTLE, 2)
        + at_places(choose, ("topology",), at.FORGET, 4)
        + at_places(choose, ("admission",), at.DOOR, 3)
    )


def kills_at_random_times(choose: random.Random) -> list[Kill]:
    return at_times(choose, FIVE, 9)


def kills_of_all(choose: random.Random) -> list[Kill]:
    places = at.ALLOCATE + at.PREPARE + at.ROW + at.SETTLE + at.FORGET + at.DOOR
    return at_places(choose, ("all",), places, 1) + at_times(choose, ("all",), 12)


async def killed(world: World, kill: Kill) -> list[str]:
    """Kill once, start again, judge."""
    if kill.place is not None:
        world.kill_when(kill.process, kill.place, kill.count)
    await world.load_until_death(kill.process, kill.delay)
    await world.restart(kill.process)
    await world.ready()
    return await world.judge()


@pytest.mark.processes
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("kills", "least", "together"),
    [
        pytest.param(kills_in_allocate, 36, False, id="in-allocate"),
        pytest.param(kills_in_prepare, 36, False, id="in-prepared-write"),
        pytest.param(kills_in_row, 36, False, id="in-row-write"),
        pytest.param(kills_after, 48, False, id="in-outcome-and-release"),
        pytest.param(kills_at_random_times, 45, False, id="at-random-times"),
        pytest.param(kills_of_all, 33, True, id="all-in-one-process"),
    ],
)
async def test_kills(
    kills: Callable[[random.Random], list[Kill]], least: int, together: bool
) -> None:
    """Nothing that was answered is lost, and nothing is half there."""
    choose = random.Random(SEED)
    plan = kills(choose)
    choose.shuffle(plan)
    assert len(plan) >= least
    sys.stderr.write(f"NUMALIGN_CRASH_SEED={SEED}\n")
    async with open_world(together=together, seed=SEED) as world:
        for number, kill in enumerate(plan):
            try:
                faults = await killed(world, kill)
            except Exception as error:
                error.add_note(f"kill {number}: {kill}\n{world.log_tail()}")
                raise
            assert not faults, f"kill {number}: {kill}:\n" + "\n".join(faults)
        # How many are answered between two kills depends on the machine; that some are does not.
        assert sum(agent.answered for agent in world.agents) > len(plan) // 4
        for agent in world.agents:
            await agent.release_all()
        assert await world.judge() == []
        assert await world.decides() == []
