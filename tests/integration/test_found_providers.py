"""Hint providers that need not register: numalign finds them by their sockets, again and again."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from grpc import StatusCode, aio
from tests.integration.one_node import OneNode, opened

from numalign.config.settings import Service
from numalign.kube.core.v1 import core_pb2
from numalign.kube.pluginregistration.v1 import api_pb2 as pr
from numalign.kube.pluginregistration.v1 import api_pb2_grpc as pr_grpc
from numalign.plugins import probe
from numalign.process import topology_part
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
WAY = "example.com/cache-way"


@pytest.fixture
def directory() -> Iterator[Path]:
    """A short path, as a socket's name has little room."""
    with tempfile.TemporaryDirectory(prefix="na-") as name:
        yield Path(name)


@contextmanager
def provider(directory: Path) -> Iterator[None]:
    """The example as a process, which is told its own socket alone."""
    example = ROOT / "clients" / "examples" / "hint-provider" / "provider.py"
    socket = directory / "found" / "cache-ways.sock"
    socket.unlink(missing_ok=True)
    with subprocess.Popen([sys.executable, example, socket]) as process:
        try:
            yield
        finally:
            process.terminate()
            assert process.wait(60) == 0


def pod(uid: str, ways: int) -> core_pb2.Pod:
    message = core_pb2.Pod(metadata=core_pb2.ObjectMeta(uid=uid, name=uid, namespace="default"))
    container = message.spec.containers.add(name="c", image="i")
    container.resources.limits[WAY].string = str(ways)
    return message


async def until_it_answers(directory: Path) -> None:
    async with aio.insecure_channel(f"unix:{directory}/found/cache-ways.sock") as channel:
        stub = pr_grpc.RegistrationStub(channel)
        await stub.GetInfo(pr.InfoRequest(), timeout=60, wait_for_ready=True)


async def ways_of(node: OneNode, uid: str, ways: int) -> list[str]:
    """The cache ways that a pod is given, once somebody gives any; asked without keeping them."""
    request = ad.AdmitRequest(pod=pod(uid, ways), dry_run=True)
    async with asyncio.timeout(60):
        while True:
            try:
                answer = await node.admission.Admit(request)
            except aio.AioRpcError as error:
                if error.code() is not StatusCode.UNAVAILABLE:
                    raise
            else:
                assert answer.verdict == pb.VERDICT_ADMITTED, answer
                found = [i for a in answer.allocations for d in a.devices for i in d.ids]
                if found:
                    return found
            await asyncio.sleep(0.05)


async def test_a_provider_is_found_and_found_again_after_a_restart(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is usual is too short for a machine that is busy with other tests.
    for place, limit in (
        (topology_part, "FOUND_SECONDS"),
        (probe, "INFO_SECONDS"),
        (probe, "NOTIFY_SECONDS"),
    ):
        monkeypatch.setattr(place, limit, 60.0)
    registry = str(directory / "found")
    async with opened(directory, providersRegistry=registry) as node:
        with provider(directory):
            assert await ways_of(node, "a", 3) == ["0/0", "0/1", "0/2"]
            kept = await node.admission.Admit(ad.AdmitRequest(pod=pod("a", 3)))
            assert kept.verdict == pb.VERDICT_ADMITTED
        # It is gone, and what it holds is not given away: nothing is decided without it.
        with pytest.raises(aio.AioRpcError) as without:
            await node.admission.Admit(ad.AdmitRequest(pod=pod("b", 1), dry_run=True))
        assert without.value.code() is StatusCode.UNAVAILABLE
        with provider(directory):
            # It has lost its books, and has them back from the record.
            assert await ways_of(node, "b", 2) == ["0/3", "0/4"]
    with provider(directory):
        await until_it_answers(directory)
        async with opened(directory, providersRegistry=registry) as node:
            # It is known by the time that the Topology Manager says that it is ready.
            (part,) = (p for p in node.node.parts if p.service is Service.TOPOLOGY)
            await part.ready()
            answer = await node.admission.Admit(ad.AdmitRequest(pod=pod("b", 2), dry_run=True))
            held = [i for a in answer.allocations for d in a.devices for i in d.ids]
            assert held == ["0/3", "0/4"]
