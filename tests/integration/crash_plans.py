"""Which processes of a node are killed where: alone, two in one moment, and again while they
recover; and one such kill, from the load before it to the verdict after it.

Shared by the tests, which take some of each, and the command, which takes all.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.integration import kill_points as at
from tests.integration.world import PROVIDERS, World

PROVIDER_NAMES = tuple(service.value for service in PROVIDERS)
FIVE = (*PROVIDER_NAMES, "topology", "admission")

OF_A_PROVIDER = at.HINTS + at.ALLOCATE + at.PREPARE + at.SETTLE + at.ADD
OF_TOPOLOGY = at.ROW + at.FORGET + at.CONTAINER
PLACES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(PROVIDER_NAMES, OF_A_PROVIDER),
    "topology": OF_TOPOLOGY,
    "admission": at.DOOR,
    "all": OF_A_PROVIDER + OF_TOPOLOGY + at.DOOR,
}
"""Where a process may die under load."""

OF_A_START: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(PROVIDER_NAMES, at.LOAD + at.LISTEN + at.TOLD),
    "topology": at.LOAD + at.LISTEN + at.INTRODUCE,
    "admission": at.LISTEN,
    "all": at.LOAD + at.LISTEN + at.TOLD + at.INTRODUCE,
}
"""Where it may die while it recovers."""

_LONGEST_DELAY_SECONDS = 0.06
_COUNTS = (1, 1, 2, 3)
_SELDOM = at.ADD + at.CONTAINER
"""Places that agents come to so seldom that the first time has to do."""


@dataclass(frozen=True)
class Kill:
    """One kill. `place` None: after `delay` seconds.

    `also` are processes that die in the same moment. `again`: where it dies once more, while it
    recovers. `loses`: it comes back without its state file.
    """

    process: str
    place: str | None = None
    count: int = 1
    delay: float | None = None
    also: tuple[str, ...] = ()
    again: str | None = None
    loses: bool = False


Plan = Callable[[random.Random], list[Kill]]


def at_places(
    choose: random.Random, processes: tuple[str, ...], places: tuple[str, ...], rounds: int
) -> list[Kill]:
    """`rounds` kills of every process at every place."""
    return [
        Kill(process, place, count=_count(choose, place))
        for _ in range(rounds)
        for process in processes
        for place in places
    ]


def at_times(choose: random.Random, processes: tuple[str, ...], rounds: int) -> list[Kill]:
    """`rounds` kills of every process at a random time under load."""
    return [
        Kill(process, delay=choose.uniform(0.0, _LONGEST_DELAY_SECONDS))
        for _ in range(rounds)
        for process in processes
    ]


def alone(choose: random.Random) -> list[Kill]:
    """Every process at each of its places, and at a random time."""
    kills = [kill for process in FIVE for kill in at_places(choose, (process,), PLACES[process], 1)]
    return kills + at_times(choose, FIVE, 1)


def in_pairs(choose: random.Random) -> list[Kill]:
    """Every process at each of its places, with each of the others; any two at a random time."""
    kills = [
        Kill(process, place, count=_count(choose, place), also=(other,))
        for process in FIVE
        for place in PLACES[process]
        for other in FIVE
        if other != process
    ]
    return kills + [
        Kill(process, delay=choose.uniform(0.0, _LONGEST_DELAY_SECONDS), also=(other,))
        for process in FIVE
        for other in FIVE
        if process < other
    ]


def twice(choose: random.Random, processes: tuple[str, ...] = FIVE) -> list[Kill]:
    """Every process at each of its places, and once more at each place of its start."""
    return [
        Kill(process, place, count=_count(choose, place), again=again)
        for process in processes
        for place in PLACES[process]
        for again in OF_A_START[process]
    ]


def taking_back(choose: random.Random) -> list[Kill]:
    """Every provider without its state, and once more while it takes back what pods hold."""
    return [
        Kill(process, choose.choice(PLACES[process]), again=again, loses=True)
        for process in PROVIDER_NAMES
        for again in at.RESTORE
    ]


def _count(choose: random.Random, place: str) -> int:
    return 1 if place in _SELDOM else choose.choice(_COUNTS)


async def killed(world: World, kill: Kill) -> list[str]:
    """Wait for an admission under load, kill, start again; everything that is wrong then."""
    await world.load_until_admitted()
    if kill.loses:
        await world.hold_something()
    if kill.place is not None:
        world.kill_when(kill.process, kill.place, kill.count, kill.also)
    await world.load_until_death(kill.process, *kill.also, delay=kill.delay)
    if kill.loses:
        world.lose_state(kill.process)
    for process in (kill.process, *kill.also):
        await world.restart(process, dies_at=kill.again if process == kill.process else None)
    if kill.again is not None:
        await world.load_until_death(kill.process)
        await world.restart(kill.process)
    await world.ready()
    if kill.loses:
        world.forgive_losses(kill.process)
    return await world.judge()


async def walk(world: World, kills: list[Kill]) -> None:
    """Kill by kill; raises AssertionError with all that is wrong at the first that breaks."""
    for number, kill in enumerate(kills):
        try:
            faults = await killed(world, kill)
        except Exception as error:
            error.add_note(f"kill {number}: {kill}\n{world.log_tail()}")
            raise
        assert not faults, f"kill {number}: {kill}:\n" + "\n".join(faults)
    for agent in world.agents:
        await agent.release_all()
    assert await world.judge() == []
    assert await world.decides() == []
