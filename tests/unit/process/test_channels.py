"""Which calls between services go over a stream, and when a provider is asked over one."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor import MethodDescriptor
from tests.unit.topology.fake_provider import FakeProvider

from numalign.config.settings import SocketSettings
from numalign.process import channels
from numalign.process.channels import provider_channel, topology_channel
from numalign.rpc.call_stream.caller import CallStream
from numalign.rpc.channel import call_stream_of
from numalign.rpc.context import Context
from numalign.rpc.methods import Registration
from numalign.rpc.server import ServiceServer
from numalign.topology.provider_handle import ProviderHandle
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import hint_provider_pb2_grpc as hp_grpc
from numalign.v1 import topology_pb2 as tm

SECONDS = 60


def described(path: str) -> MethodDescriptor:
    service, name = path[1:].split("/")
    known = {
        each.full_name: each
        for module in (hp, tm)
        for each in module.DESCRIPTOR.services_by_name.values()
    }
    method: MethodDescriptor = known[service].methods_by_name[name]
    return method


@pytest.mark.parametrize("path", sorted(channels._PROVIDER_CALLS | channels._TOPOLOGY_CALLS))
def test_what_is_carried_is_a_unary_method_of_the_contract(path: str) -> None:
    method = described(path)
    assert not method.client_streaming
    assert not method.server_streaming


class Carrying(FakeProvider):
    """Says whether it has streams of calls."""

    carries = True

    async def GetInfo(self, request: hp.GetInfoRequest, context: Context) -> hp.GetInfoResponse:  # noqa: N802
        info = await super().GetInfo(request, context)
        info.call_stream = self.carries
        return info


@pytest.fixture
def path() -> Iterator[Path]:
    """Short: a socket's path has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="na-") as directory:
        yield Path(directory) / "s"


async def asked_until(handle: ProviderHandle, stream: CallStream, *, is_open: bool) -> None:
    """Ask until the stream stands so."""
    async with asyncio.timeout(SECONDS):
        while stream.is_open is not is_open:
            await handle.stub.Commit(hp.CommitRequest(), timeout=SECONDS)
            await asyncio.sleep(0.005)


async def test_a_provider_is_asked_over_a_stream_while_it_says_that_it_has_one(path: Path) -> None:
    provider = Carrying("p")
    registration = Registration(hp_grpc.add_HintProviderServicer_to_server, provider)
    server = ServiceServer([registration], path, SocketSettings(), call_streams=True)
    await server.start()
    async with provider_channel(path) as channel:
        stream = call_stream_of(channel)
        assert stream is not None
        handle = ProviderHandle(
            name="p",
            endpoint=f"unix://{path}",
            stub=hp_grpc.HintProviderStub(channel),
            timeout=SECONDS,
            built_in=True,
            call_stream=stream,
        )
        await handle.stub.Commit(hp.CommitRequest(), timeout=SECONDS)
        assert not stream.is_open
        await handle.introduce(hp.HintProviderReconcileRequest())
        await asked_until(handle, stream, is_open=True)
        provider.carries = False
        await handle.introduce(hp.HintProviderReconcileRequest())
        assert not stream.is_open
        await handle.stub.Commit(hp.CommitRequest(), timeout=SECONDS)
        provider.carries = True
        await handle.introduce(hp.HintProviderReconcileRequest())
        await asked_until(handle, stream, is_open=True)
    await server.stop(0)


async def test_the_topology_manager_is_tried_at_once(path: Path) -> None:
    async with topology_channel(path) as channel:
        stream = call_stream_of(channel)
        assert stream is not None
        assert stream._wanted
