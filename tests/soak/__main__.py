"""`python -m tests.soak`: a node under load that is broken again and again, and what came of it.

The exit code is 1 if anything was lost, doubled, stuck or otherwise wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys

from tests.soak.recovery import recovery
from tests.soak.run import soak

MOST_GROWTH = 0.05


def main() -> int:
    """Soak, measure recovery, print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--admissions", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=3600.0, help="longest time")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 2**31))
    parser.add_argument("--pods", type=int, default=500, help="admitted when all is killed")
    options = parser.parse_args()
    figures = asyncio.run(soak(options.admissions, options.seed, seconds=options.seconds))
    _say(*figures.lines())
    _say(*asyncio.run(recovery(options.pods)).lines())
    return 1 if figures.faults or figures.stuck or figures.growth > MOST_GROWTH else 0


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
