"""Channels: to a Unix socket, or inside the process; opened once and kept for life.

Separate from `local`, which only dispatches. A call inherits what the incoming call brought:
its deadline, and its trace. Over a socket both are sent; inside the process they are there
already. Where tracing is on, every call gets a span.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from grpc import ChannelConnectivity, aio

from numalign.rpc.call_stream.caller import CallStream
from numalign.rpc.call_stream.messages import PATH as CALL_STREAM
from numalign.rpc.deadline import within
from numalign.rpc.local import LocalChannel, LocalServer
from numalign.rpc.unary_call import UnaryCall
from numalign.telemetry.spans import CallSpan, Tracer
from numalign.telemetry.trace_context import current_trace

MESSAGE_BYTES = 4 << 20
"""The largest message that is sent or received; a pod has at most 1 MiB."""

METADATA_BYTES = 64 << 10
"""The most metadata that one side accepts."""

_OPTIONS: tuple[tuple[str, Any], ...] = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.max_send_message_length", MESSAGE_BYTES),
    ("grpc.max_metadata_size", METADATA_BYTES),
    # Who restarts must be found again at once, however long it was away: to try a socket of
    # the same machine costs next to nothing, and this is as often as gRPC tries.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 100),
    # How long an attempt may take: a busy machine is slow, and a socket without a server fails
    # at once.
    ("grpc.min_reconnect_backoff_ms", 5000),
    # A Unix socket says by itself when the other side is gone.
    ("grpc.keepalive_time_ms", 2**31 - 1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config_disable_resolution", 1),
)

Call = Callable[..., Any]


def socket_target(path: Path) -> str:
    """The gRPC target of a Unix socket; `path` is absolute."""
    return f"unix:{quote(str(path), safe='/')}"


def open_channel(
    path: Path, tracer: Tracer | None = None, carried: Collection[str] = ()
) -> aio.Channel:
    """A channel to the Unix socket at `path`. It connects at the first call, again and again.

    A call fails at once with UNAVAILABLE while nobody listens, unless it asks to wait. Calls of
    the unary methods in `carried`, by path, go over one open stream once `call_stream_of` says
    that one is wanted, and the server has one.
    """
    inner = aio.insecure_channel(socket_target(path), options=_OPTIONS)
    return _Outgoing(inner, _with_deadline, tracer, frozenset(carried))


def open_local_channel(server: LocalServer, tracer: Tracer | None = None) -> aio.Channel:
    """A channel to the servicers of this process."""
    channel = LocalChannel(server)
    return channel if tracer is None else _Outgoing(channel, None, tracer, frozenset())


def call_stream_of(channel: aio.Channel) -> CallStream | None:
    """The stream that calls of the channel can go over; None where none do."""
    return channel.call_stream if isinstance(channel, _Outgoing) else None


class _Outgoing(aio.Channel):
    """Puts what every outgoing call needs around the calls of another channel."""

    def __init__(
        self,
        inner: Any,
        forward: Callable[[Call, bool], Call] | None,
        tracer: Tracer | None,
        carried: frozenset[str],
    ) -> None:
        self._inner = inner
        self._forward = forward
        self._tracer = tracer
        self._carried = carried
        self.call_stream = (
            CallStream(inner.stream_stream(CALL_STREAM), MESSAGE_BYTES) if carried else None
        )

    def unary_unary(
        self,
        method: str,
        request_serializer: Any = None,
        response_deserializer: Any = None,
        _registered_method: bool | None = False,
    ) -> Any:
        """One request, one response."""
        call = self._inner.unary_unary(
            method, request_serializer, response_deserializer, _registered_method
        )
        if self._forward is not None:
            call = _waited_for(call)
        if self.call_stream is not None and method in self._carried:
            call = self.call_stream.carrying(
                method, request_serializer, response_deserializer, call
            )
        return self._wrap(method, call)

    def unary_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """One request, a stream of responses."""
        return self._wrap(method, self._inner.unary_stream(method, *args, **kwargs))

    def stream_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """A stream of requests, one response."""
        return self._wrap(method, self._inner.stream_unary(method, *args, **kwargs))

    def stream_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """A stream of requests, a stream of responses."""
        return self._wrap(method, self._inner.stream_stream(method, *args, **kwargs))

    def _wrap(self, method: str, call: Call) -> Call:
        if self._forward is not None:
            call = self._forward(call, self._tracer is None)
        return call if self._tracer is None else _with_span(call, method, self._tracer)

    async def close(self, grace: float | None = None) -> None:
        """Close the connection."""
        if self.call_stream is not None:
            self.call_stream.want(wanted=False)
        await self._inner.close(grace)

    def get_state(self, try_to_connect: bool = False) -> ChannelConnectivity:
        """How the connection stands."""
        state: ChannelConnectivity = self._inner.get_state(try_to_connect)
        return state

    async def wait_for_state_change(self, last_observed_state: ChannelConnectivity) -> None:
        """Wait until the connection stands otherwise."""
        await self._inner.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """Wait until there is a connection."""
        await self._inner.channel_ready()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.close()


def _waited_for(call: Call) -> Call:
    def started(*args: Any, **options: Any) -> Any:
        return UnaryCall(call(*args, **options))

    return started


def _with_deadline(call: Call, with_trace: bool) -> Call:
    def forwarding(
        request: Any = None, timeout: float | None = None, metadata: Any = None, **options: Any
    ) -> Any:
        trace = current_trace.get() if with_trace else None
        if trace is not None:
            metadata = (*(metadata or ()), *trace.metadata())
        return call(request, timeout=within(timeout), metadata=metadata, **options)

    return forwarding


def _with_span(call: Call, method: str, tracer: Tracer) -> Call:
    def spanned(
        request: Any = None, timeout: float | None = None, metadata: Any = None, **options: Any
    ) -> Any:
        span = tracer.client(method)
        metadata = (*(metadata or ()), *span.metadata())
        started = call(request, timeout=timeout, metadata=metadata, **options)
        started.add_done_callback(lambda ended: _end_soon(span, ended))
        return started

    return spanned


_ending: set[asyncio.Task[None]] = set()


def _end_soon(span: CallSpan, call: Any) -> None:
    # A call tells its code only to a coroutine; the time is taken here.
    task = asyncio.get_running_loop().create_task(_end(span, call, time.time_ns()))
    _ending.add(task)
    task.add_done_callback(_ending.discard)


async def _end(span: CallSpan, call: Any, at: int) -> None:
    span.end(await call.code(), await call.details() or "", at)


async def spans_ended() -> None:
    """Wait until the spans of all calls that are over have ended; for an orderly stop."""
    while _ending:
        await asyncio.wait(tuple(_ending))
