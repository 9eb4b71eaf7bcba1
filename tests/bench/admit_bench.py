"""How long an Admit takes, in multiples of a floor that is measured in the same run.

Floor and product take turns, call by call, so that both see the same machine. What is timed is
one Admit of a new pod with one container that asks for CPUs, memory and a device; the release
that follows is not.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from grpc import StatusCode, aio
from tests.bench import floor
from tests.bench.processes import (
    WAIT_SECONDS,
    Unmeasurable,
    floor_command,
    running,
    service_command,
    until_listening,
    until_serving,
)
from tests.bench.times import Compared, Times
from tests.integration.node_document import pod, write_document

from numalign.config.settings import CORE_SERVICES
from numalign.rpc.channel import open_channel
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import types_pb2 as pb

Step = Callable[[], Awaitable[float]]
"""Does one thing and says how many seconds it took."""


async def five_processes(directory: Path, samples: int, warm_up: int) -> Compared:
    """Every service in a process of its own."""
    log = directory / "log"
    config = write_document(directory)
    commands = {f"floor-{name}": floor_command(name, directory) for name in floor.FIVE}
    commands |= {service.value: service_command(service.value, config) for service in CORE_SERVICES}
    with running(commands, log):
        until_listening([floor.socket_of(directory, name) for name in floor.FIVE], log)
        until_serving([directory / "run" / f"{service}.sock" for service in CORE_SERVICES], log)
        return await _compare(directory, "admission", "Admit", samples, warm_up)


async def one_process(directory: Path, samples: int, warm_up: int) -> Compared:
    """All services in one process."""
    log = directory / "log"
    config = write_document(directory)
    commands = {
        "floor": floor_command(floor.ONE, directory),
        "all": service_command("all", config),
    }
    with running(commands, log):
        until_listening([floor.socket_of(directory, floor.ONE)], log)
        until_serving([directory / "run" / f"{service}.sock" for service in CORE_SERVICES], log)
        return await _compare(directory, floor.ONE, "Commit", samples, warm_up)


async def until_decided(step: Step) -> None:
    """Wait until services have found each other. Raises Unmeasurable if they do not."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            await step()
        except aio.AioRpcError as error:
            if error.code() != StatusCode.UNAVAILABLE or time.monotonic() > deadline:
                raise Unmeasurable(str(error)) from error
            await asyncio.sleep(0.05)
        else:
            return


async def _compare(
    directory: Path, floor_name: str, floor_method: str, samples: int, warm_up: int
) -> Compared:
    call = floor.open_call(floor.socket_of(directory, floor_name), floor_method)
    channel = open_channel(directory / "run" / "admission.sock")
    admissions = Admissions(ad_grpc.AdmissionStub(channel))

    async def floor_step() -> float:
        started = time.perf_counter()
        await call(b"")
        return time.perf_counter() - started

    await until_decided(admissions.step)
    taken: tuple[list[float], list[float]] = ([], [])
    for number in range(warm_up + samples):
        for times, step in zip(taken, (floor_step, admissions.step), strict=True):
            seconds = await step()
            if number >= warm_up:
                times.append(seconds * 1000)
    await channel.close()
    return Compared(*map(Times.of, taken))


class Admissions:
    """Admits one new pod after another, each released before the next."""

    def __init__(self, stub: ad_grpc.AdmissionAsyncStub) -> None:
        self._stub = stub
        self._number = 0

    async def step(self) -> float:
        """Admit one pod: the seconds that took. Raises Unmeasurable if it is refused."""
        self._number += 1
        uid = f"pod-{self._number}"
        request = ad.AdmitRequest(pod=pod(uid, cpu=2))
        started = time.perf_counter()
        answer = await self._stub.Admit(request)
        took = time.perf_counter() - started
        if answer.verdict != pb.VERDICT_ADMITTED:
            raise Unmeasurable(f"a pod is refused: {answer}")
        await self._stub.Release(ad.ReleaseRequest(pod_uid=uid))
        return took
