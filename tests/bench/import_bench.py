"""What it costs a program to load the client, against `import grpc` alone.

Processor time of whole processes, the least of several runs in turns: what is loaded is always
the same, so the least is what it takes.
"""

from __future__ import annotations

import resource
import subprocess
import sys

from tests.bench.figures import Figure, at_most_floors
from tests.bench.processes import Unmeasurable

AT_MOST = 1.5
"""Multiples of `import grpc`."""

_FLOOR = "import grpc"
_NAMES = ("Client", "AsyncClient", "AdmissionClient")


def measure(runs: int = 15) -> list[Figure]:
    """One figure for each client. Raises Unmeasurable where one cannot be loaded."""
    loads = {name: f"from numalign_client import {name}" for name in _NAMES}
    least = dict.fromkeys((_FLOOR, *loads.values()), float("inf"))
    for _ in range(runs):
        for code in least:
            least[code] = min(least[code], _seconds(code))
    return [
        Figure(
            name=f"import, {name}",
            unit="ms",
            value=least[code] * 1000,
            floor=least[_FLOOR] * 1000,
            target=at_most_floors(AT_MOST),
        )
        for name, code in loads.items()
    ]


def _seconds(code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    if done.returncode:
        raise Unmeasurable(done.stderr.decode())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
