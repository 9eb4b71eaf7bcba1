"""How long an Admit takes on machines with many NUMA nodes, against one on two nodes.

The floor is the same services over a machine of two nodes, asked in turns with the others. What
runs on the machines all of whose nodes have CPUs is in `tenants`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.admit_bench import until_decided
from tests.bench.big_node import TWO, Shape, pod, write_document
from tests.bench.processes import running, service_command, until_serving
from tests.bench.tenants import Tenants, admitted
from tests.bench.times import Compared, Times

from numalign.config.settings import CORE_SERVICES
from numalign.rpc.channel import open_channel
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc


@dataclass(frozen=True, slots=True)
class Scattered:
    """Times of a machine in pieces, and how its Admits ended: all, refused, and not proved."""

    compared: Compared
    decided: int
    refused: int
    unproved: int
    undecided: int


async def same_pod(directory: Path, shape: Shape, samples: int, warm_up: int) -> Compared:
    """One pod after another, each released before the next, on `shape` and on two nodes."""
    taken: dict[str, list[float]] = {"two": [], "many": []}
    with _both(directory, shape) as stubs:
        for stub in stubs.values():
            await until_decided(_Same(stub).step)
        steps = {name: _Same(stub) for name, stub in stubs.items()}
        for number in range(warm_up + samples):
            for name, same in steps.items():
                seconds = await same.step()
                if number >= warm_up:
                    taken[name].append(seconds * 1000)
    return Compared(*map(Times.of, taken.values()))


async def scattered(directory: Path, shape: Shape, samples: int, warm_up: int) -> Scattered:
    """Pods of all sizes on `shape`, parts of which are always in use."""
    two: list[float] = []
    many: list[float] = []
    with _both(directory, shape) as stubs:
        for stub in stubs.values():
            await until_decided(_Same(stub).step)
        same, tenants = _Same(stubs["two"]), Tenants(stubs["many"], shape)
        for number in range(warm_up + samples):
            if number == warm_up:
                tenants.count_anew()
            for times, step in ((two, same.step), (many, tenants.step)):
                seconds = await step()
                if number >= warm_up:
                    times.append(seconds * 1000)
    return Scattered(
        Compared(Times.of(two), Times.of(many)),
        tenants.decided,
        tenants.refused,
        tenants.unproved,
        tenants.undecided,
    )


@contextmanager
def _both(directory: Path, shape: Shape) -> Iterator[dict[str, ad_grpc.AdmissionAsyncStub]]:
    """Five services over two nodes, and five over `shape`."""
    log = directory / "log"
    homes = {"two": directory / "two", "many": directory / "many"}
    commands, sockets = {}, []
    for name, of in (("two", TWO), ("many", shape)):
        config = write_document(homes[name], of)
        for service in CORE_SERVICES:
            commands[f"{name}-{service}"] = service_command(service.value, config)
            sockets.append(homes[name] / "run" / f"{service}.sock")
    with running(commands, log):
        until_serving(sockets, log)
        yield {
            name: ad_grpc.AdmissionStub(open_channel(home / "run" / "admission.sock"))
            for name, home in homes.items()
        }


class _Same:
    """Admits the same pod again and again, under another name each time."""

    def __init__(self, stub: ad_grpc.AdmissionAsyncStub) -> None:
        self._stub = stub
        self._number = 0

    async def step(self) -> float:
        """Admit one, and have it gone: the seconds that the Admit took."""
        self._number += 1
        uid = f"same-{self._number}"
        request = ad.AdmitRequest(pod=pod(uid, cpus=8, memory_gib=16, gpus=1, nics=1))
        started = time.perf_counter()
        answer = await self._stub.Admit(request)
        took = time.perf_counter() - started
        admitted(answer)
        await self._stub.Release(ad.ReleaseRequest(pod_uid=uid))
        return took
