"""The streams between services in processes of their own, broken and held up in every way.

That a call went over a stream shows in what is said when the stream breaks under it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import StatusCode, aio
from tests.integration.node_document import pod
from tests.integration.one_node import OneNode, opened
from tests.integration.world import World, open_world
from tests.unit.client.dongles import DONGLE, Dongles
from tests.unit.client.dongles import pod as dongle_pod

from numalign.config.settings import Service
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb
from numalign.v1.hint_provider_pb2_grpc import add_HintProviderServicer_to_server
from numalign_client.sdk import HintProviderServicer, ProviderServer

BROKE = "the stream of calls broke"
PROCESSES = ("cpu", "memory", "device", "topology")

processes = pytest.mark.processes


@contextmanager
def held(world: World, process: str) -> Iterator[None]:
    """A process that does not run meanwhile, unless it is killed."""
    descriptor = world._running[process]
    signal.pidfd_send_signal(descriptor, signal.SIGSTOP)
    try:
        yield
    finally:
        signal.pidfd_send_signal(descriptor, signal.SIGCONT)


@asynccontextmanager
async def carrying_world() -> AsyncIterator[World]:
    """Five processes whose streams are open: two admissions have gone over them."""
    async with open_world(together=False, seed=1) as world:
        for uid in ("first", "second"):
            assert await admitted(world, uid)
            await world.admission.Release(ad.ReleaseRequest(pod_uid=uid), timeout=60)
        yield world


async def admitted(world: World, uid: str) -> bool:
    answer = await world.admission.Admit(ad.AdmitRequest(pod=pod(uid, gpus=1)), timeout=60)
    return answer.verdict == pb.VERDICT_ADMITTED


async def failure_of(call: Any) -> tuple[StatusCode, str]:
    with pytest.raises(aio.AioRpcError) as failed:
        await asyncio.wait_for(call, 120)
    return failed.value.code(), failed.value.details() or ""


async def still_sound(world: World) -> None:
    await world.ready()
    assert await world.judge() == []
    assert await world.decides() == []
    assert await admitted(world, "after")
    await world.admission.Release(ad.ReleaseRequest(pod_uid="after"), timeout=60)


@processes
@pytest.mark.parametrize("process", PROCESSES)
async def test_killed_with_a_call_in_flight(process: str) -> None:
    # How long a call takes to get there depends on the machine, and nothing tells that it has.
    for seconds in (0.2, 2.0, 20.0):
        async with carrying_world() as world:
            with held(world, process):
                call = world.admission.Admit(ad.AdmitRequest(pod=pod("during")), timeout=90)
                await asyncio.sleep(seconds)
                world.kill(process)
            code, details = await failure_of(call)
            assert code is StatusCode.UNAVAILABLE
            await world._dead(process)
            await world.restart(process)
            await still_sound(world)
        if BROKE in details:
            break
    assert BROKE in details


@processes
@pytest.mark.parametrize("process", PROCESSES)
async def test_a_deadline_passes_while_a_process_hangs(process: str) -> None:
    async with carrying_world() as world:
        with held(world, process):
            call = world.admission.Admit(ad.AdmitRequest(pod=pod("late")), timeout=0.5)
            code, _ = await failure_of(call)
            assert code is StatusCode.DEADLINE_EXCEEDED
        await still_sound(world)


@processes
@pytest.mark.parametrize("process", PROCESSES)
async def test_given_up_while_a_process_hangs(process: str) -> None:
    async with carrying_world() as world:
        with held(world, process):
            call = world.admission.Admit(ad.AdmitRequest(pod=pod("gone")), timeout=90)
            await asyncio.sleep(0.2)
            call.cancel()
            assert await call.code() is StatusCode.CANCELLED
        await still_sound(world)


@processes
async def test_a_pod_as_long_as_they_come() -> None:
    async with carrying_world() as world:
        long = pod("long", gpus=1)
        long.metadata.annotations["note"] = "x" * 1_000_000
        for uid in ("long", "long-too"):
            long.metadata.uid = uid
            answer = await world.admission.Admit(ad.AdmitRequest(pod=long), timeout=60)
            assert answer.verdict == pb.VERDICT_ADMITTED
            await world.admission.Release(ad.ReleaseRequest(pod_uid=uid), timeout=60)
        await still_sound(world)


@processes
@pytest.mark.parametrize("process", PROCESSES)
async def test_stopped_in_order_while_nothing_is_asked(process: str) -> None:
    async with carrying_world() as world:
        await world.stop(process)
        await world.restart(process)
        await still_sound(world)


@pytest.fixture
def directory() -> Iterator[Path]:
    """Short: a socket's path has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="na-") as name:
        yield Path(name)


STRANGER = """
import os, sys, grpc
# Made before it is somebody else, who may not be able to read what is imported.
with grpc.insecure_channel(f"unix:{sys.argv[1]}") as channel:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
    try:
        next(channel.stream_stream("/numalign.v1.CallStream/Carry")(iter([b""]), timeout=60))
        print("OK")
    except grpc.RpcError as error:
        print(error.code().name)
"""


@processes
@pytest.mark.skipif(
    os.geteuid() != 0 and "CI" not in os.environ, reason="only root can become another user"
)
async def test_nobody_else_opens_a_stream() -> None:
    async with open_world(together=False, seed=1) as world:
        world.directory.chmod(0o755)
        for process in PROCESSES:
            path = world.directory / "run" / f"{process}.sock"
            stranger = await asyncio.create_subprocess_exec(
                sys.executable, "-c", STRANGER, str(path), stdout=asyncio.subprocess.PIPE
            )
            told, _ = await asyncio.wait_for(stranger.communicate(), 20)
            assert told.decode().strip() == "UNAVAILABLE"


@contextmanager
def older(path: Path) -> Iterator[None]:
    """A provider of a third party that has no streams."""
    server = grpc.server(ThreadPoolExecutor(8))
    add_HintProviderServicer_to_server(HintProviderServicer(Dongles()), server)
    server.add_insecure_port(f"unix://{path}")
    server.start()
    try:
        yield
    finally:
        server.stop(0).wait()


@contextmanager
def newer(path: Path) -> Iterator[None]:
    """A provider of a third party on the SDK."""
    server = ProviderServer(Dongles(), path)
    server.start()
    try:
        yield
    finally:
        server.stop(0)


async def given(node: OneNode, uid: str) -> list[str]:
    answer = await node.admission.Admit(ad.AdmitRequest(pod=dongle_pod(uid, 1)))
    return [i for a in answer.allocations for d in a.devices if d.resource == DONGLE for i in d.ids]


@pytest.mark.parametrize(("served", "streams"), [(older, False), (newer, True)], ids=["old", "new"])
async def test_a_third_party_is_asked_over_a_stream_if_it_has_one(
    directory: Path, served: Any, streams: bool
) -> None:
    (directory / "run").mkdir(mode=0o750)
    path = directory / "run" / "dongles.sock"
    listed = [{"name": "dongles", "endpoint": f"unix://{path}"}]
    with served(path):
        async with opened(directory, providers=listed) as node:
            for number in range(4):
                uid = f"pod-{number}"
                assert await given(node, uid) == ["d0"]
                await node.admission.Release(ad.ReleaseRequest(pod_uid=uid))
            (handle,) = (
                h for h in node.servicer(Service.TOPOLOGY)._registry.handles if h.name == "dongles"
            )
            assert handle.call_stream is not None
            assert handle.call_stream.is_open is streams
            with pytest.raises(aio.AioRpcError) as refused:
                await given(node, "")
            assert refused.value.code() is StatusCode.INVALID_ARGUMENT
