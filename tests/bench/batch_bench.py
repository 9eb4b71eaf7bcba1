"""How many pods a second are admitted in one stream, in multiples of the same pods one by one.

Both on the same five processes, in turns: 250 pods by Admit, each sent when the last one is
answered, and the same 250 by AdmitPods. Each pod has one container that asks for a CPU, memory and
a device; the node has room for all of them. Releasing them in between is not timed.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.admit_bench import Admissions, until_decided
from tests.bench.processes import Unmeasurable, running, service_command, until_serving
from tests.integration.node_document import GPU, pod, write_document

from numalign.config.settings import CORE_SERVICES
from numalign.rpc.channel import open_channel
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import types_pb2 as pb

PODS = 250
_CORES = 80
_NODES = 2


@dataclass(frozen=True)
class Rates:
    """Pods a second: the median of each way, over all rounds."""

    one_by_one: float
    stream: float

    @property
    def ratio(self) -> float:
        """How many times faster the stream is."""
        return self.stream / self.one_by_one


async def measure(directory: Path, rounds: int, *, processes: bool = True) -> Rates:
    """Take turns for so many rounds; without `processes` all services run in one."""
    log = directory / "log"
    config = write_document(directory, machine=_machine(), devices=[_devices()])
    names = [service.value for service in CORE_SERVICES] if processes else ["all"]
    commands = {name: service_command(name, config) for name in names}
    with running(commands, log):
        until_serving([directory / "run" / f"{service}.sock" for service in CORE_SERVICES], log)
        channel = open_channel(directory / "run" / "admission.sock")
        stub = ad_grpc.AdmissionStub(channel)
        await until_decided(Admissions(stub).step)
        taken: dict[str, list[float]] = {"one": [], "stream": []}
        for number in range(rounds + 1):
            for way, admit in (("one", _one_by_one), ("stream", _stream)):
                pods = [pod(f"{way}-{number}-{n}", memory="64Mi") for n in range(PODS)]
                started = time.perf_counter()
                await admit(stub, pods)
                seconds = time.perf_counter() - started
                if number:
                    taken[way].append(PODS / seconds)
                await stub.Reconcile(
                    ad.ReconcileRequest(as_of_revision=await _revision(stub), sources_ready=True)
                )
        await channel.close()
    return Rates(statistics.median(taken["one"]), statistics.median(taken["stream"]))


async def _one_by_one(stub: ad_grpc.AdmissionAsyncStub, pods: list[Any]) -> None:
    for each in pods:
        _require(await stub.Admit(ad.AdmitRequest(pod=each)))


async def _stream(stub: ad_grpc.AdmissionAsyncStub, pods: list[Any]) -> None:
    async def requests() -> AsyncIterator[ad.AdmitPodsRequest]:
        for each in pods:
            yield ad.AdmitPodsRequest(admit=ad.AdmitRequest(pod=each))

    answered = 0
    async for answer in stub.AdmitPods(requests()):
        if answer.HasField("error"):
            raise Unmeasurable(f"a pod of a stream is not decided on: {answer.error}")
        _require(answer.decision)
        answered += 1
    if answered != len(pods):
        raise Unmeasurable(f"{answered} of {len(pods)} pods were answered")


def _require(answer: ad.AdmitResponse) -> None:
    if answer.verdict != pb.VERDICT_ADMITTED:
        raise Unmeasurable(f"a pod is refused: {answer}")


async def _revision(stub: ad_grpc.AdmissionAsyncStub) -> int:
    return (await stub.ListAdmissions(ad.ListAdmissionsRequest())).revision


def _machine() -> dict[str, Any]:
    """Two NUMA nodes with room for all pods."""
    return {
        "numa_nodes": [
            {
                "id": node,
                "memory_bytes": 64 << 30,
                "distances": [10, 20] if node == 0 else [20, 10],
                "cores": [
                    {
                        "id": core,
                        "socket_id": node,
                        "threads": [
                            node * _CORES + core,
                            _NODES * _CORES + node * _CORES + core,
                        ],
                    }
                    for core in range(_CORES)
                ],
            }
            for node in range(_NODES)
        ]
    }


def _devices() -> dict[str, Any]:
    return {
        "resource": GPU,
        "devices": [{"id": f"g{n}", "numa_nodes": [n % _NODES]} for n in range(PODS + PODS // 5)],
        "preferred_allocation": "lowest-id",
    }


if __name__ == "__main__":
    import sys
    import tempfile

    with tempfile.TemporaryDirectory(prefix="na-") as scratch:
        rates = asyncio.run(
            measure(Path(scratch), int(sys.argv[1]), processes=sys.argv[2:] != ["one"])
        )
    sys.stdout.write(f"{rates.one_by_one:.0f} -> {rates.stream:.0f} pods/s, {rates.ratio:.2f} x\n")
