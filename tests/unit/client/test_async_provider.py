"""A provider of coroutines, called over a socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from grpc import aio
from tests.unit.client.dongles import DONGLE, Dongles, pod

from numalign.kube.core.v1 import core_pb2
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import hint_provider_pb2_grpc as hp_grpc
from numalign.v1 import types_pb2 as pb
from numalign_client.sdk import AsyncHintProvider, AsyncProviderServer, Grant, Hints


class AsyncDongles(AsyncHintProvider):
    """Decides as `Dongles` does, and lets others run before each answer."""

    name = "dongles"
    resources = (DONGLE,)

    def __init__(self) -> None:
        self._dongles = Dongles()
        self.heard: list[tuple[str, str]] = []
        self.loops: set[asyncio.AbstractEventLoop] = set()

    async def hints(self, which: core_pb2.Pod, container: core_pb2.Container) -> Hints | None:
        await self._turn()
        return self._dongles.hints(which, container)

    async def allocate(
        self, which: core_pb2.Pod, container: core_pb2.Container, nodes: frozenset[int] | None
    ) -> Mapping[str, Grant]:
        await self._turn()
        return self._dongles.allocate(which, container, nodes)

    async def committed(self, pod_uid: str) -> None:
        self.heard.append(("committed", pod_uid))

    async def release(self, pod_uid: str) -> None:
        self.heard.append(("released", pod_uid))

    async def _turn(self) -> None:
        await asyncio.sleep(0)
        self.loops.add(asyncio.get_running_loop())
        if self._books is not None:
            self._dongles.bind(self._books)


class World:
    """A provider that is served, and a stub to it."""

    def __init__(self, provider: AsyncDongles, channel: aio.Channel) -> None:
        self.provider = provider
        self.stub: hp_grpc.HintProviderAsyncStub = hp_grpc.HintProviderStub(channel)

    async def allocated(self, admission: str, which: core_pb2.Pod) -> hp.AllocateResponse:
        return await self.stub.Allocate(
            hp.AllocateRequest(
                admission_id=admission,
                pod=which.SerializeToString(),
                container="c0",
                affinity=pb.Hint(mask=0b10, preferred=True),
                last=True,
            ),
            timeout=60,
        )


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    provider = AsyncDongles()
    socket = tmp_path / "p"
    async with (
        AsyncProviderServer(provider, socket),
        aio.insecure_channel(f"unix:{socket}") as channel,
    ):
        yield World(provider, channel)


async def test_decisions_are_made_on_the_loop_of_the_author(world: World) -> None:
    who = pod("p", 1)
    asked = await world.stub.GetTopologyHints(
        hp.GetTopologyHintsRequest(admission_id="1", pod=who.SerializeToString(), container="c0"),
        timeout=60,
    )
    given = await world.allocated("1", who)
    await world.stub.Commit(hp.CommitRequest(admission_id="1"), timeout=60)
    other = await world.allocated("2", pod("q", 1))

    assert list(asked.hints.resources[DONGLE].masks) == [0b01, 0b10, 0b11]
    assert [list(d.ids) for d in given.allocations[0].devices] == [["d2"]]
    assert other.failure.message == "too few dongles"
    assert world.provider.heard == [("committed", "p")]
    assert world.provider.loops == {asyncio.get_running_loop()}


@pytest.mark.parametrize(
    ("wanted", "fault", "deferral"),
    [
        pytest.param(13, "13 dongles make no sense", "", id="fault"),
        pytest.param(14, "", "Counting", id="deferral"),
    ],
)
async def test_what_is_raised_comes_through(
    world: World, wanted: int, fault: str, deferral: str
) -> None:
    answer = await world.stub.GetTopologyHints(
        hp.GetTopologyHintsRequest(
            admission_id="1", pod=pod("p", wanted).SerializeToString(), container="c0"
        ),
        timeout=60,
    )

    assert (answer.fault, answer.deferral.reason) == (fault, deferral)


async def test_a_pod_as_a_whole_is_asked_about(world: World) -> None:
    answer = await world.stub.GetPodTopologyHints(
        hp.GetPodTopologyHintsRequest(admission_id="1", pod=pod("p", 1, 2).SerializeToString()),
        timeout=60,
    )

    assert list(answer.hints.resources[DONGLE].masks) == [0b11]


async def test_release_is_heard(world: World) -> None:
    await world.allocated("1", pod("p", 1))
    await world.stub.Commit(hp.CommitRequest(admission_id="1"), timeout=60)
    await world.stub.Release(hp.HintProviderReleaseRequest(pod_uids=["p"]), timeout=60)

    assert world.provider.heard == [("committed", "p"), ("released", "p")]


def test_without_a_server_there_are_no_books() -> None:
    with pytest.raises(RuntimeError, match="provider dongles is not served yet"):
        AsyncDongles().taken(DONGLE)
