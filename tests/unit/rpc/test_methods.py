"""What can be registered."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2_grpc
from tests.unit.rpc.echo import Echo, EchoStub, registration

from numalign.rpc.channel import open_local_channel
from numalign.rpc.context import Context
from numalign.rpc.local import LocalServer
from numalign.rpc.methods import Registration, collect


async def test_every_method_is_collected() -> None:
    methods = collect([registration(Echo())])
    shapes = {m.path: (m.request_streaming, m.response_streaming) for m in methods}
    assert shapes == {
        "/test.Echo/Unary": (False, False),
        "/test.Echo/Stream": (False, True),
        "/test.Echo/Collect": (True, False),
        "/test.Echo/Chat": (True, True),
    }


async def test_a_service_cannot_be_registered_twice() -> None:
    with pytest.raises(TypeError, match=r"service test\.Echo is registered twice"):
        collect([registration(Echo()), registration(Echo())])
    server = LocalServer()
    server.add([registration(Echo())])
    with pytest.raises(TypeError, match=r"/test\.Echo/Unary is registered twice"):
        server.add([registration(Echo())])


def test_a_servicer_must_be_asynchronous() -> None:
    class Synchronous(Echo):
        def Unary(self, request: bytes, context: Context) -> Any:  # noqa: N802
            return request, context

    with pytest.raises(TypeError, match=r"/test\.Echo/Unary.* is not asynchronous"):
        collect([registration(Synchronous())])


def test_a_stream_must_be_a_generator() -> None:
    class Writes(Echo):
        async def Stream(self, request: bytes, context: Context) -> None:  # type: ignore[override]  # noqa: N802  the shape that is refused
            await context.write(request)

    with pytest.raises(TypeError, match=r"/test\.Echo/Stream.* is not asynchronous"):
        collect([registration(Writes())])


def test_registering_nothing_is_a_mistake() -> None:
    def add(servicer: object, server: aio.Server) -> None:
        server.add_generic_rpc_handlers(())

    with pytest.raises(TypeError, match="registered no method"):
        collect([Registration(add, object())])


async def test_what_the_generated_base_leaves_open_is_unimplemented() -> None:
    class Half(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # it has no types
        pass

    server = LocalServer()
    server.add([Registration(health_pb2_grpc.add_HealthServicer_to_server, Half())])
    channel: Any = open_local_channel(server)
    calls = (
        channel.unary_unary("/grpc.health.v1.Health/Check")(b""),
        channel.unary_stream("/grpc.health.v1.Health/Watch")(b"").read(),
    )
    for call in calls:
        with pytest.raises(aio.AioRpcError) as caught:
            await call
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
        assert caught.value.details() == "Method not implemented!"


async def test_a_local_channel_is_always_ready() -> None:
    channel = open_local_channel(LocalServer())
    await channel.channel_ready()
    assert channel.get_state() is grpc.ChannelConnectivity.READY
    async with channel:
        assert EchoStub(channel) is not None
