"""`python -m tests.integration.crash`: processes killed at every place, and what came of it.

Every process alone at each of its places; with each other one in the same moment; once more at
each place of its start; and providers that come back without their state. The exit code is 1 if
anything that was answered was lost, doubled or half there, and the first such kill is named.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time

from tests.integration import crash_plans as plans
from tests.integration.crash_plans import PLACES, Plan, at_places, at_times, walk
from tests.integration.world import open_world


def together(choose: random.Random) -> list[plans.Kill]:
    """All services in one process: at each place, and once more at each place of its start."""
    alone = at_places(choose, ("all",), PLACES["all"], 1) + at_times(choose, ("all",), 1)
    return alone + plans.twice(choose, ("all",))


KINDS: tuple[tuple[str, Plan, bool], ...] = (
    ("one of five processes", plans.alone, False),
    ("two in one moment", plans.in_pairs, False),
    ("one, and again while it recovers", plans.twice, False),
    ("a provider without its state, and again", plans.taking_back, False),
    ("all services in one process, and again", together, True),
)


def main() -> int:
    """Walk every plan and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.integration.crash", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 2**31))
    options = parser.parse_args()
    _say(f"seed {options.seed}")
    for name, plan, in_one in KINDS:
        choose = random.Random(options.seed)
        kills = plan(choose)
        choose.shuffle(kills)
        started = time.monotonic()
        try:
            asyncio.run(_walk(kills, options.seed, in_one=in_one))
        except Exception as error:
            _say(f"{name}: broken: {error}", *getattr(error, "__notes__", ()))
            return 1
        took = time.monotonic() - started
        _say(f"{name:<42} {len(kills):>4} kills, 0 invariants broken, {took:.0f} s")
    return 0


async def _walk(kills: list[plans.Kill], seed: int, *, in_one: bool) -> None:
    async with open_world(together=in_one, seed=seed) as world:
        await walk(world, kills)


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
