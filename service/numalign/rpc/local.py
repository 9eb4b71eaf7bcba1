"""Calls between services of one process: a channel for stubs, straight to the servicers.

The same servicers and messages as over a socket, without serialisation, and for unary calls
without a task: an awaited call runs inside its caller. Deadlines, cancellation, aborts and
errors behave as over a socket.

Messages are shared, not copied. So a servicer must not change a request or keep it to change
it later, and a caller must not change a response; who needs to, copies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self

from grpc import ChannelConnectivity, aio

from numalign.rpc.guard import guarded
from numalign.rpc.local_context import LocalContext
from numalign.rpc.local_stream import LocalStream
from numalign.rpc.local_unary import LocalUnaryCall
from numalign.rpc.methods import Method, Registration, collect
from numalign.telemetry.spans import Tracer


class LocalServer:
    """The servicers of this process, by method path. Add all of them before the first call."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._tracer = tracer
        self.methods: dict[str, Method] = {}

    def add(self, registrations: Iterable[Registration]) -> None:
        """Serve more servicers. Raises TypeError for one that cannot be served."""
        for method in collect(registrations):
            if method.path in self.methods:
                raise TypeError(f"{method.path} is registered twice")
            self.methods[method.path] = guarded(method, self._tracer)


class LocalChannel(aio.Channel):
    """What generated aio stubs take in place of a channel to a socket.

    A method that is not served answers UNIMPLEMENTED. There is nothing to connect or close.
    """

    def __init__(self, server: LocalServer) -> None:
        self._server = server

    def unary_unary(
        self,
        method: str,
        request_serializer: object = None,
        response_deserializer: object = None,
        _registered_method: bool | None = None,
    ) -> Any:
        """One request, one response."""
        del request_serializer, response_deserializer
        methods = self._server.methods

        def call(
            request: object,
            *,
            timeout: float | None = None,
            metadata: Iterable[tuple[str, str | bytes]] | None = None,
            credentials: object = None,
            wait_for_ready: bool | None = None,
            compression: object = None,
        ) -> LocalUnaryCall:
            del credentials, wait_for_ready, compression
            context = LocalContext(timeout, metadata or ())
            return LocalUnaryCall(methods.get(method), request, context, timeout)

        return call

    def unary_stream(
        self,
        method: str,
        request_serializer: object = None,
        response_deserializer: object = None,
        _registered_method: bool | None = None,
    ) -> Any:
        """One request, a stream of responses."""
        del request_serializer, response_deserializer
        return self._streaming(method)

    def stream_unary(
        self,
        method: str,
        request_serializer: object = None,
        response_deserializer: object = None,
        _registered_method: bool | None = None,
    ) -> Any:
        """A stream of requests, one response."""
        del request_serializer, response_deserializer
        return self._streaming(method)

    def stream_stream(
        self,
        method: str,
        request_serializer: object = None,
        response_deserializer: object = None,
        _registered_method: bool | None = None,
    ) -> Any:
        """A stream of requests, a stream of responses."""
        del request_serializer, response_deserializer
        return self._streaming(method)

    def _streaming(self, path: str) -> Callable[..., LocalStream]:
        methods = self._server.methods

        def call(
            request: Any = None,
            timeout: float | None = None,
            metadata: Iterable[tuple[str, str | bytes]] | None = None,
            credentials: object = None,
            wait_for_ready: bool | None = None,
            compression: object = None,
        ) -> LocalStream:
            del credentials, wait_for_ready, compression
            context = LocalContext(timeout, metadata or ())
            return LocalStream(methods.get(path), request, context, timeout)

        return call

    async def close(self, grace: float | None = None) -> None:
        """There is nothing to close."""
        del grace

    def get_state(self, try_to_connect: bool = False) -> ChannelConnectivity:
        """Always ready."""
        del try_to_connect
        return ChannelConnectivity.READY

    async def wait_for_state_change(self, last_observed_state: ChannelConnectivity) -> None:
        """The state never changes: waits until it is cancelled, unless it is another already."""
        if last_observed_state is ChannelConnectivity.READY:
            await asyncio.get_running_loop().create_future()

    async def channel_ready(self) -> None:
        """Always ready."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        return None
