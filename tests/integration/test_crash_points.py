"""Processes are killed inside admissions; what callers were told stays true.

Two hundred kills in five processes, and some with all services in one: at chosen places of an
admission, at random times, two in one moment, and once more while they recover. Before each a
pod was admitted under load, after each the whole node is judged: see `world`, `books` and
`agents`. `make crash` takes every pair, and every place of a recovery after every place.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable

import pytest
from tests.integration import crash_plans as plans
from tests.integration import kill_points as at
from tests.integration.crash_plans import FIVE, PLACES, PROVIDER_NAMES, Kill, at_places, at_times
from tests.integration.world import open_world

SEED = int(os.environ.get("NUMALIGN_CRASH_SEED", "0")) or random.SystemRandom().randrange(1, 10**9)
"""Set the variable to repeat a run."""


def kills_in_allocate(choose: random.Random) -> list[Kill]:
    return at_places(choose, PROVIDER_NAMES, at.ALLOCATE, 3)


def kills_in_prepare(choose: random.Random) -> list[Kill]:
    return at_places(choose, PROVIDER_NAMES, at.PREPARE, 4)


def kills_in_row(choose: random.Random) -> list[Kill]:
    return at_places(choose, ("topology",), at.ROW, 9)


def kills_after(choose: random.Random) -> list[Kill]:
    return (
        at_places(choose, PROVIDER_NAMES, at.SETTLE, 2)
        + at_places(choose, PROVIDER_NAMES, at.ADD, 1)
        + at_places(choose, ("topology",), at.FORGET + at.CONTAINER, 2)
        + at_places(choose, ("admission",), at.DOOR, 3)
    )


def kills_at_random_times(choose: random.Random) -> list[Kill]:
    return at_times(choose, FIVE, 9)


def kills_of_all(choose: random.Random) -> list[Kill]:
    again = choose.sample(plans.twice(choose, ("all",)), 8)
    return at_places(choose, ("all",), PLACES["all"], 1) + at_times(choose, ("all",), 8) + again


def kills_in_pairs(choose: random.Random) -> list[Kill]:
    return choose.sample(plans.in_pairs(choose), 20)


def kills_in_recovery(choose: random.Random) -> list[Kill]:
    return choose.sample(plans.twice(choose), 10) + choose.sample(plans.taking_back(choose), 4)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("kills", "least", "together"),
    [
        pytest.param(kills_in_allocate, 36, False, id="in-allocate"),
        pytest.param(kills_in_prepare, 36, False, id="in-prepared-write"),
        pytest.param(kills_in_row, 36, False, id="in-row-write"),
        pytest.param(kills_after, 48, False, id="in-outcome-and-release"),
        pytest.param(kills_at_random_times, 45, False, id="at-random-times"),
        pytest.param(kills_of_all, 37, True, id="all-in-one-process"),
        pytest.param(kills_in_pairs, 20, False, id="two-in-one-moment"),
        pytest.param(kills_in_recovery, 14, False, id="again-while-recovering"),
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
        await plans.walk(world, plan)
