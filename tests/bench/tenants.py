"""Pods that come and go at random, so that what is free on a machine lies in pieces.

Each asks for between one CPU and half of the machine, small ones as often as large ones by
order of magnitude, for memory in about the same share, and every other one for devices. How
much of the machine is in use wanders between a tenth and nine tenths.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from random import Random

from grpc import StatusCode, aio
from tests.bench.big_node import Shape, pod
from tests.bench.processes import Unmeasurable

from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import types_pb2 as pb

_STEPS_OF_A_LEVEL = 25
"""After how many pods another share of the machine is to be in use."""


@dataclass(frozen=True, slots=True)
class _Amounts:
    cpus: int
    memory_gib: int
    gpus: int
    nics: int


class Tenants:
    """The pods of one machine, and how asking for them ended."""

    def __init__(self, stub: ad_grpc.AdmissionAsyncStub, shape: Shape) -> None:
        self._stub = stub
        self._shape = shape
        self._random = Random(f"tenants of {shape.nodes} nodes")
        self._running: dict[str, _Amounts] = {}
        self._number = 0
        self._level = 0.5
        self.count_anew()

    def count_anew(self) -> None:
        """Forget how Admits ended so far."""
        self.decided = self.refused = self.unproved = self.undecided = 0

    async def step(self) -> float:
        """Make room, and ask for one more pod: the seconds that its Admit took."""
        if self._number % _STEPS_OF_A_LEVEL == 0:
            self._level = self._random.uniform(0.1, 0.9)
        await self._make_room()
        amounts = self._wanted()
        self._number += 1
        uid = f"tenant-{self._number}"
        request = ad.AdmitRequest(
            pod=pod(
                uid,
                cpus=amounts.cpus,
                memory_gib=amounts.memory_gib,
                gpus=amounts.gpus,
                nics=amounts.nics,
            )
        )
        started = time.perf_counter()
        try:
            answer = await self._stub.Admit(request)
        except aio.AioRpcError as error:
            if error.code() is not StatusCode.RESOURCE_EXHAUSTED:
                raise
            self.undecided += 1
            return time.perf_counter() - started
        took = time.perf_counter() - started
        self.decided += 1
        self.unproved += bool(answer.warnings)
        if answer.verdict == pb.VERDICT_ADMITTED:
            self._running[uid] = amounts
        else:
            self.refused += 1
        return took

    async def _make_room(self) -> None:
        while self._running and self._used("cpus") > self._level * self._shape.cpus:
            uid = self._random.choice(list(self._running))
            del self._running[uid]
            await self._stub.Release(ad.ReleaseRequest(pod_uid=uid))

    def _wanted(self) -> _Amounts:
        """What the next pod asks for, never more than is free."""
        shape, random = self._shape, self._random
        free = shape.cpus - shape.reserved_cpus - self._used("cpus")
        cpus = min(free, max(1, round((shape.cpus / 2) ** random.random())))
        share = cpus / shape.cpus
        memory = shape.memory_gib * shape.cpu_nodes
        devices = random.random() < 0.5
        return _Amounts(
            cpus,
            min(
                max(1, int(memory * share * random.uniform(0.3, 1))),
                memory - shape.reserved_memory_gib - self._used("memory_gib"),
            ),
            self._some(shape.gpus, share, "gpus") if devices else 0,
            self._some(shape.nics, share, "nics") if devices else 0,
        )

    def _some(self, all_of_them: int, share: float, name: str) -> int:
        return min(max(1, round(all_of_them * share)), all_of_them - self._used(name))

    def _used(self, name: str) -> int:
        return sum(getattr(amounts, name) for amounts in self._running.values())


def admitted(answer: ad.AdmitResponse) -> None:
    """Raise Unmeasurable unless the pod was admitted."""
    if answer.verdict != pb.VERDICT_ADMITTED:
        raise Unmeasurable(f"a pod is refused: {answer}")
