"""How an Admit grows with the number of pods on the node: 10, 100 and 1000.

Three nodes of the same machine run side by side and are asked in turns, so that all see the same
machine. Each pod that is there holds a CPU and memory of its own, and every tenth a device.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench.admit_bench import until_decided
from tests.bench.big_node import Shape, pod, write_document
from tests.bench.processes import running, service_command, until_serving
from tests.bench.tenants import admitted
from tests.bench.times import Times

from numalign.config.settings import CORE_SERVICES
from numalign.kube.core.v1 import core_pb2
from numalign.rpc.channel import open_channel
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc

LEVELS = (10, 100, 1000)
"""Pods on the node."""

_SHAPE = Shape(nodes=2, cpu_nodes=2, cores_per_node=288, memory_gib=1024, gpus=128, nics=8)
_DEVICE_EVERY = 10


async def measure(
    directory: Path, samples: int, warm_up: int, *, processes: bool
) -> dict[int, Times]:
    """Times of an Admit by how many pods are there."""
    names = [service.value for service in CORE_SERVICES] if processes else ["all"]
    log = directory / "log"
    homes = {level: directory / str(level) for level in LEVELS}
    commands: dict[str, list[str]] = {}
    for level, home in homes.items():
        config = write_document(home, _SHAPE)
        commands |= {f"{name}-{level}": service_command(name, config) for name in names}
    with running(commands, log):
        sockets = [home / "run" / f"{s}.sock" for home in homes.values() for s in CORE_SERVICES]
        until_serving(sockets, log)
        channels = {
            level: open_channel(home / "run" / "admission.sock") for level, home in homes.items()
        }
        nodes = {
            level: _Node(ad_grpc.AdmissionStub(channel)) for level, channel in channels.items()
        }
        for level, node in nodes.items():
            await until_decided(node.step)
            await node.fill(level)
        taken = await _in_turns(nodes, samples, warm_up)
        for channel in channels.values():
            await channel.close()
    return {level: Times.of(times) for level, times in taken.items()}


async def _in_turns(
    nodes: dict[int, _Node], samples: int, warm_up: int
) -> dict[int, Sequence[float]]:
    taken: dict[int, list[float]] = {level: [] for level in nodes}
    for number in range(warm_up + samples):
        for level, node in nodes.items():
            seconds = await node.step()
            if number >= warm_up:
                taken[level].append(seconds * 1000)
    return dict(taken)


class _Node:
    """One set of services, with pods that stay and one that comes and goes."""

    def __init__(self, stub: ad_grpc.AdmissionAsyncStub) -> None:
        self._stub = stub
        self._number = 0

    async def fill(self, pods: int) -> None:
        """Have so many pods there."""
        for number in range(pods):
            device = int(number % _DEVICE_EVERY == 0)
            request = ad.AdmitRequest(pod=_pod(f"stays-{number}", device))
            admitted(await self._stub.Admit(request))

    async def step(self) -> float:
        """Admit one more and have it gone: the seconds that the Admit took."""
        self._number += 1
        uid = f"goes-{self._number}"
        request = ad.AdmitRequest(pod=_pod(uid, 1))
        started = time.perf_counter()
        answer = await self._stub.Admit(request)
        took = time.perf_counter() - started
        admitted(answer)
        await self._stub.Release(ad.ReleaseRequest(pod_uid=uid))
        return took


def _pod(uid: str, devices: int) -> core_pb2.Pod:
    return pod(uid, cpus=1, memory_gib=1, gpus=devices, nics=0)
