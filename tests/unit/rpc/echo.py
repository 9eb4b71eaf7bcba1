"""A hand-made service for the tests of servers and channels: bytes in, bytes out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import grpc
from grpc import aio

from numalign.errors import FieldViolation, InvalidInput
from numalign.rpc.context import Context
from numalign.rpc.deadline import current_deadline
from numalign.rpc.methods import Registration
from numalign.telemetry.trace_context import current_trace

SERVICE = "test.Echo"


class Echo:
    """Every way that a call can end, in every shape of call."""

    def __init__(self) -> None:
        self.cancelled = asyncio.Event()
        self.sleeping = 0
        """How many calls sleep that their callers have to end."""
        self.slept = 0
        """How many did so far."""
        self.go = asyncio.Event()
        """What calls wait for that are to be held."""
        self.seen: dict[str, Any] = {}

    async def Unary(self, request: bytes, context: Context) -> bytes:  # noqa: N802
        self.seen["metadata"] = dict(context.invocation_metadata() or ())
        self.seen["remaining"] = context.time_remaining()
        self.seen["deadline"] = current_deadline.get()
        self.seen["trace"] = current_trace.get()
        return await self.behave(request, context)

    async def Stream(self, request: bytes, context: Context) -> AsyncIterator[bytes]:  # noqa: N802
        yield b"first"
        yield await self.behave(request, context)

    async def Collect(self, requests: AsyncIterator[bytes], context: Context) -> bytes:  # noqa: N802
        return b",".join([await self.behave(r, context) async for r in requests])

    async def Chat(self, requests: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:  # noqa: N802
        async for request in requests:
            yield await self.behave(request, context)

    async def behave(self, request: bytes, context: Context) -> bytes:
        match request:
            case b"abort":
                trailing = (("key", "value"),)
                await context.abort(grpc.StatusCode.ABORTED, "no", trailing)
            case b"invalid":
                raise InvalidInput(FieldViolation("pod.name", "Required value"))
            case b"bug":
                raise ZeroDivisionError("oops")
            case b"timeout":
                raise TimeoutError
            case b"code":
                context.set_code(grpc.StatusCode.NOT_FOUND)
                context.set_details("set")
            case b"sleep":
                self.sleeping += 1
                self.slept += 1
                try:
                    await asyncio.sleep(120)
                except asyncio.CancelledError:
                    self.cancelled.set()
                    raise
                finally:
                    self.sleeping -= 1
            case b"held":
                await self.go.wait()
            case b"short":
                await asyncio.sleep(0.2)
        return request


def registration(
    servicer: object,
    deserializers: Mapping[str, Callable[[bytes], object]] | None = None,
    service: str = SERVICE,
) -> Registration:
    def add(servicer: Any, server: aio.Server) -> None:
        handlers: dict[str, Any] = {
            "Unary": grpc.unary_unary_rpc_method_handler(servicer.Unary),
            "Stream": grpc.unary_stream_rpc_method_handler(servicer.Stream),
            "Collect": grpc.stream_unary_rpc_method_handler(servicer.Collect),
            "Chat": grpc.stream_stream_rpc_method_handler(servicer.Chat),
        }
        server.add_registered_method_handlers(service, handlers)

    return Registration(add, servicer, deserializers or {})


class EchoStub:
    """As generated code makes it."""

    def __init__(self, channel: aio.Channel, service: str = SERVICE) -> None:
        self.Unary: Any = channel.unary_unary(f"/{service}/Unary")
        self.Stream: Any = channel.unary_stream(f"/{service}/Stream")
        self.Collect: Any = channel.stream_unary(f"/{service}/Collect")
        self.Chat: Any = channel.stream_stream(f"/{service}/Chat")
        self.Missing: Any = channel.unary_unary(f"/{service}/Missing")
