"""Third-party providers that restart without what they gave: it is given back, or guarded."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from grpc import StatusCode, aio
from tests.integration.one_node import OneNode, opened
from tests.unit.client.dongles import DONGLE, Dongles, pod

from numalign.v1 import admission_pb2 as ad
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb
from numalign_client.provider import server as provider_server
from numalign_client.sdk import CannotAllocate, HintProviderServicer, ProviderServer


class Silent(HintProviderServicer):
    """A provider that was not written with the SDK: it tells no holdings, and takes none back."""

    def Reconcile(  # noqa: N802 - the contract's
        self, request: hp.HintProviderReconcileRequest, context: grpc.ServicerContext
    ) -> hp.HintProviderReconcileResponse:
        del request.recorded_pods[:]
        answer = super().Reconcile(request, context)
        answer.ClearField("holdings")
        return answer


class Unplugged(Dongles):
    """d1 is not there any more."""

    def take_back(self, pod_uid: str, resource: str, ids: Sequence[str]) -> None:
        super().take_back(pod_uid, resource, ids)
        if "d1" in ids:
            raise CannotAllocate("d1 is not plugged in")


@pytest.fixture
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="na-") as name:
        (Path(name) / "run").mkdir(mode=0o750)
        yield Path(name)


class Socket:
    """Where a provider is served, by one process after the other."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "run" / "dongles.sock"
        self._server: ProviderServer | None = None

    async def serve(self, provider: Dongles, state: Path | None = None) -> None:
        """Kill who serves, if there is anybody, and start another, by default without state."""
        await self.stop()
        server = ProviderServer(provider, self._path, state=state)
        await asyncio.to_thread(server.start)
        self._server = server

    async def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await asyncio.to_thread(server.stop, 0)


@pytest.fixture
async def socket(directory: Path) -> AsyncIterator[Socket]:
    socket = Socket(directory)
    yield socket
    await socket.stop()


@asynccontextmanager
async def node_in(directory: Path, **policy: str) -> AsyncIterator[OneNode]:
    socket = f"unix://{directory}/run/dongles.sock"
    listed = [{"name": "dongles", "endpoint": socket, **policy}]
    async with opened(directory, providers=listed) as node:
        yield node


async def admit(node: OneNode, uid: str, *wanted: int, init: tuple[int, ...] = ()) -> list[str]:
    """The dongles that a pod was given; asks again while it cannot be decided on."""
    request = ad.AdmitRequest(pod=pod(uid, *wanted, init=init))
    async with asyncio.timeout(60):
        while True:
            try:
                answer = await node.admission.Admit(request)
            except aio.AioRpcError as error:
                if error.code() != StatusCode.UNAVAILABLE or "gave" in (error.details() or ""):
                    raise
                await asyncio.sleep(0.02)
            else:
                break
    assert answer.verdict == pb.VERDICT_ADMITTED, answer
    return [i for a in answer.allocations for d in a.devices for i in d.ids]


async def devices(node: OneNode, uid: str) -> list[pb.DeviceAllocation]:
    listing = await node.listing()
    (record,) = (record for record in listing.admissions if record.pod_uid == uid)
    return [device for allocation in record.allocations for device in allocation.devices]


async def problems(node: OneNode) -> list[str]:
    return [p for record in (await node.listing()).admissions for p in record.problems]


async def test_a_provider_gets_back_what_it_gave(directory: Path, socket: Socket) -> None:
    await socket.serve(Dongles())
    async with node_in(directory) as node:
        assert await admit(node, "a", 1, init=(1,)) == ["d0", "d1"]
        await node.admission.AddContainer(
            ad.AddContainerRequest(pod_uid="a", container_name="c0", container_id="x")
        )
        (before,) = await devices(node, "a")
        assert (before.provider, list(before.ids)) == ("dongles", ["d1"])
        prepared = await node.admission.PrepareContainer(
            ad.PrepareContainerRequest(pod_uid="a", container_name="c0")
        )
        assert list(prepared.allocation.devices) == [before]
        again = Dongles()
        await socket.serve(again)
        assert await admit(node, "b", 1) == ["d0"]
        assert await admit(node, "c", 1) == ["d2"]
        assert again.heard[0] == ("committed", "a")
        assert await devices(node, "a") == [before]
        assert await problems(node) == []


async def test_it_gets_it_back_when_the_node_has_restarted_too(
    directory: Path, socket: Socket
) -> None:
    await socket.serve(Dongles())
    async with node_in(directory) as node:
        assert await admit(node, "a", 2) == ["d0", "d1"]
    await socket.serve(Dongles())
    async with node_in(directory) as node:
        assert await admit(node, "b", 1) == ["d2"]
        assert await problems(node) == []


async def test_what_it_cannot_have_back_is_a_problem(directory: Path, socket: Socket) -> None:
    await socket.serve(Dongles())
    async with node_in(directory) as node:
        assert await admit(node, "a", 2) == ["d0", "d1"]
        await socket.serve(Unplugged())
        assert await admit(node, "b", 1) == ["d0"]
        assert await devices(node, "a") == []
        assert await problems(node) == ["dongles: container c0: d1 is not plugged in"]


async def test_who_does_not_tell_cannot_give_it_twice(
    directory: Path, socket: Socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_server, "HintProviderServicer", Silent)
    await socket.serve(Dongles())
    async with node_in(directory) as node:
        assert await admit(node, "a", 1) == ["d0"]
        (before,) = await devices(node, "a")
        await socket.serve(Dongles())
        with pytest.raises(aio.AioRpcError) as refused:
            await admit(node, "b", 1)
        assert f'gave {DONGLE} "d0", which it gave pod "a"' in (refused.value.details() or "")
        assert await devices(node, "a") == [before]
        assert await problems(node) == [
            f"dongles: container c0: {DONGLE} d0: the provider has no record of it any more"
        ]
        await node.admission.Release(ad.ReleaseRequest(pod_uid="a"))
        assert await admit(node, "b", 1) == ["d0"]
        assert await problems(node) == []


@pytest.mark.parametrize(
    ("policy", "starts"),
    [pytest.param("Ignore", True, id="ignored"), pytest.param("Fail", False, id="needed")],
)
async def test_what_it_gave_stays_recorded_while_it_is_away(
    directory: Path, socket: Socket, policy: str, starts: bool
) -> None:
    await socket.serve(Dongles())
    request = ad.AddContainerRequest(pod_uid="a", container_name="c0", container_id="x")
    async with node_in(directory, failurePolicy=policy) as node:
        await admit(node, "a", 1)
        before = await devices(node, "a")
        await socket.stop()
        if starts:
            await node.admission.AddContainer(request)
        else:
            with pytest.raises(aio.AioRpcError) as failed:
                await node.admission.AddContainer(request)
            assert failed.value.code() == StatusCode.UNAVAILABLE
        assert await devices(node, "a") == before
        await socket.serve(Dongles())
        await admit(node, "b", 0)
        await node.admission.AddContainer(request)
        assert await devices(node, "a") == before


async def test_a_pod_of_a_lost_record_is_taken_over_without_waiting_for_it(
    directory: Path, socket: Socket
) -> None:
    state = directory / "dongles.db"
    await socket.serve(Dongles(), state)
    async with node_in(directory, failurePolicy="Ignore") as node:
        await admit(node, "a", 1)
        before = await devices(node, "a")
    for path in (directory / "state").glob("numalign.db*"):
        path.unlink()
    async with node_in(directory, failurePolicy="Ignore") as node:
        # It has told of its stray, and went away before an agent named the pod.
        await socket.stop()
        await admit(node, "b", 0)
        answer = await node.admission.Admit(ad.AdmitRequest(pod=pod("a", 1)))
        assert answer.already_admitted
        assert await devices(node, "a") == []
        await socket.serve(Dongles(), state)
        await node.settled()
        assert await admit(node, "c", 1) == ["d1"]
        assert await devices(node, "a") == before
        assert await problems(node) == []
