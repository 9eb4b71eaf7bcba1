"""The kubelet's pods interface over a socket."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode, aio
from tests.unit.agent.sources.collecting import running

from numalign.kube.core.v1 import core_pb2
from numalign.kube.pods.v1alpha1 import api_pb2, api_pb2_grpc
from numalign.rpc.channel import socket_target
from numalign_agent.backoff import Backoff
from numalign_agent.sources.kubelet.pods_api import KubeletPodsApi


class Kubelet(api_pb2_grpc.PodsServicer):
    """Tells what is put into `events`; None ends the watch."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[api_pb2.WatchPodsEvent | None] = asyncio.Queue()

    async def WatchPods(self, _request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        while (event := await self.events.get()) is not None:
            yield event
        await context.abort(StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")

    async def ListPods(self, request: Any, context: Any) -> Any:  # noqa: N802
        raise NotImplementedError

    async def GetPod(self, request: Any, context: Any) -> Any:  # noqa: N802
        raise NotImplementedError

    def say(self, *events: tuple[int, str]) -> None:
        for kind, name in events:
            self.events.put_nowait(api_pb2.WatchPodsEvent(type=kind, pod=pod(name)))  # type: ignore[arg-type]

    def synced(self) -> None:
        self.events.put_nowait(api_pb2.WatchPodsEvent(type=api_pb2.INITIAL_SYNC_COMPLETE))


def pod(name: str) -> bytes:
    metadata = core_pb2.ObjectMeta(name=name, namespace="default", uid=f"uid-{name}")
    return core_pb2.Pod(metadata=metadata).SerializeToString()


@pytest.fixture
def socket() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="na-") as directory:
        yield Path(directory) / "pods-api.sock"


@asynccontextmanager
async def serving(kubelet: Kubelet, socket: Path) -> AsyncIterator[None]:
    server = aio.server()
    api_pb2_grpc.add_PodsServicer_to_server(kubelet, server)
    server.add_insecure_port(socket_target(socket))
    await server.start()
    yield
    await server.stop(None)


async def test_pods_are_followed_from_the_first_complete_picture(socket: Path) -> None:
    kubelet = Kubelet()
    source = KubeletPodsApi(socket, Backoff(0.01, 0.05))
    async with serving(kubelet, socket), running(source) as delivered:
        kubelet.say((api_pb2.ADDED, "a"), (api_pb2.ADDED, "b"))
        kubelet.synced()
        await delivered.until(lambda: delivered.names == ["a", "b"])
        assert len(delivered.sets) == 1

        kubelet.say((api_pb2.DELETED, "a"), (api_pb2.MODIFIED, "c"))
        await delivered.until(lambda: delivered.names == ["b", "c"])

        kubelet.events.put_nowait(None)
        await delivered.until(lambda: bool(source.problems()))
        assert source.problems() == {str(socket): "RESOURCE_EXHAUSTED: rejected by rate limit"}
        assert delivered.names == ["b", "c"]

        kubelet.say((api_pb2.ADDED, "d"))
        kubelet.synced()
        await delivered.until(lambda: delivered.names == ["d"])
        assert source.problems() == {}


async def test_a_kubelet_that_is_not_there_yet(socket: Path) -> None:
    source = KubeletPodsApi(socket, Backoff(0.01, 0.05))
    async with running(source) as delivered:
        await delivered.until(lambda: bool(source.problems()))
        kubelet = Kubelet()
        kubelet.synced()
        async with serving(kubelet, socket):
            await delivered.until(lambda: delivered.names == [])


@pytest.mark.parametrize(
    "nonsense",
    [
        pytest.param(api_pb2.WatchPodsEvent(type=api_pb2.ADDED, pod=b"\xff"), id="no-pod"),
        pytest.param(api_pb2.WatchPodsEvent(type=9), id="unknown-event"),  # type: ignore[arg-type]
    ],
)
async def test_nonsense(socket: Path, nonsense: api_pb2.WatchPodsEvent) -> None:
    kubelet = Kubelet()
    kubelet.events.put_nowait(nonsense)
    source = KubeletPodsApi(socket, Backoff(0.01, 0.05))
    async with serving(kubelet, socket), running(source) as delivered:
        await delivered.until(lambda: bool(source.problems()))
        kubelet.synced()
        await delivered.until(lambda: delivered.names == [])
