"""How soon a node decides again when processes were killed with many pods admitted.

The processes are forked from one that has imported everything, so that what is measured is what
pods cost: opening state, meeting each other, and settling what every pod holds. How long
Python takes to import a service is measured by the benchmarks.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from grpc import StatusCode, aio
from tests.integration.node_document import document, pod
from tests.soak.soak_world import PROCESSES, SoakWorld, claims_section, machine

from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

NODES, CORES = 4, 128
WAIT_SECONDS = 30.0
TIMES = 3
MEMORY = "1Mi"


@dataclass(frozen=True)
class Recovery:
    """Seconds from a restart to the first decision, the worst of a few.

    `every` is with all processes killed at once, `each` has them by the one process that
    was killed.
    """

    pods: int
    every: float
    each: dict[str, float]

    def lines(self) -> list[str]:
        """The figures as a table."""
        rows = [(f"all killed, {self.pods} pods: decides after", self.every)]
        rows += [(f"{name} killed, {self.pods} pods", took) for name, took in self.each.items()]
        return [f"{name:<42} {took:.2f} s" for name, took in rows]


async def recovery(pods: int) -> Recovery:
    """Admit pods on a large node, kill processes, and wait for a decision."""
    with TemporaryDirectory(prefix="na-") as name:
        directory = Path(name)
        (directory / "state").mkdir(mode=0o700)
        world = SoakWorld(directory, seed=1, disk=None)
        (directory / "config.yaml").write_text(yaml.safe_dump(_large(directory)))
        try:
            await world.start()
            await world.ready()
            for number in range(pods):
                request = ad.AdmitRequest(pod=pod(f"p{number}", gpus=0, memory=MEMORY), owner="o")
                answer = await world.admission.Admit(request, timeout=WAIT_SECONDS)
                assert answer.verdict == pb.VERDICT_ADMITTED, answer
            every = max([await _killed(world, PROCESSES) for _ in range(TIMES)])
            each = {process: await _killed(world, (process,)) for process in PROCESSES}
            listing = await world.admission.ListAdmissions(ad.ListAdmissionsRequest(), timeout=5)
            assert len(listing.admissions) == pods
            assert not any(record.problems for record in listing.admissions)
        finally:
            await world.close()
    return Recovery(pods, every, each)


async def _killed(world: SoakWorld, processes: tuple[str, ...]) -> float:
    """Kill processes, start them, and count the seconds until a dry run is answered."""
    await asyncio.gather(*(world.killed(process) for process in processes))
    started = time.monotonic()
    for process in processes:
        await world.restart(process)
    request = ad.AdmitRequest(pod=pod("probe", gpus=0, memory=MEMORY), dry_run=True)
    while True:
        try:
            await world.admission.Admit(request, timeout=5)
        except aio.AioRpcError as error:
            late = time.monotonic() - started > WAIT_SECONDS
            if error.code() != StatusCode.UNAVAILABLE or late:
                error.add_note(world.log_tail())
                raise
            await asyncio.sleep(0.005)
        else:
            return time.monotonic() - started


def _large(directory: Path) -> dict[str, Any]:
    found = document(directory, machine=machine(NODES, CORES), dra=claims_section(directory))
    found["reservedSystemCPUs"] = "0"
    return found
