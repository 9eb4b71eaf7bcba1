"""Running an admit handler: its server on a Unix socket, with threads or on an event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

import grpc
from grpc import aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from numalign.v1 import admit_handler_pb2 as ah
from numalign.v1 import admit_handler_pb2_grpc as ah_grpc
from numalign_client.admit_handler.base import AsyncAdmitHandler, SimpleAdmitHandler
from numalign_client.admit_handler.messages import attributes_of, response_of
from numalign_client.signals import until_signalled, wait_for_signal
from numalign_client.target import target_of

_WORKERS = 4
_SERVICE = "numalign.v1.AdmitHandler"
_NAMES = ("", _SERVICE)


class AdmitHandlerServicer(ah_grpc.AdmitHandlerServicer):
    """The AdmitHandler service around a handler; one lock makes calls come one at a time."""

    def __init__(self, handler: SimpleAdmitHandler) -> None:
        self._handler = handler
        self._one_at_a_time = threading.Lock()

    def Judge(  # noqa: N802 - the contract's
        self, request: ah.JudgeRequest, context: grpc.ServicerContext
    ) -> ah.JudgeResponse:
        """Judges one pod."""
        attributes = attributes_of(request)
        with self._one_at_a_time:
            if not context.is_active():
                # Nobody waits for it any more; the author's code need not run.
                return ah.JudgeResponse()
            return response_of(self._handler.judge(attributes))


class AsyncAdmitHandlerServicer(ah_grpc.AdmitHandlerServicer):
    """The AdmitHandler service around a handler with asyncio."""

    def __init__(self, handler: AsyncAdmitHandler) -> None:
        self._handler = handler

    async def Judge(  # noqa: N802 - the contract's
        self,
        request: ah.JudgeRequest,
        context: aio.ServicerContext[ah.JudgeRequest, ah.JudgeResponse],
    ) -> ah.JudgeResponse:
        """Judges one pod."""
        del context
        return response_of(await self._handler.judge(attributes_of(request)))


class AdmitHandlerServer:
    """Serves a handler on `socket`, as a context manager or with `run`.

    The socket is to be listed in numalign's configuration, under `admission.handlers`.

    >>> AdmitHandlerServer(Quota(), "/run/quota/admit.sock").run()
    """

    def __init__(self, handler: SimpleAdmitHandler, socket: str | os.PathLike[str]) -> None:
        self._handler = handler
        self._target = target_of(socket)
        self._server: grpc.Server | None = None

    def start(self) -> None:
        """Listen. Raises RuntimeError for a socket that cannot be used."""
        server = grpc.server(ThreadPoolExecutor(_WORKERS))
        ah_grpc.add_AdmitHandlerServicer_to_server(AdmitHandlerServicer(self._handler), server)
        healthy = health.HealthServicer()
        for name in _NAMES:
            healthy.set(name, health_pb2.HealthCheckResponse.SERVING)
        health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
        server.add_insecure_port(self._target)
        server.start()
        self._server = server

    def stop(self, grace: float = 2.0) -> None:
        """Stop taking calls, and let those in hand end within `grace` seconds."""
        if self._server is not None:
            self._server.stop(grace).wait()

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT. Call it from the main thread."""
        with self:
            wait_for_signal()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


class AsyncAdmitHandlerServer:
    """The same for a handler with asyncio, as an asynchronous context manager or with `run`."""

    def __init__(self, handler: AsyncAdmitHandler, socket: str | os.PathLike[str]) -> None:
        self._handler = handler
        self._target = target_of(socket)
        self._server: aio.Server | None = None

    async def start(self) -> None:
        """Listen. Raises RuntimeError for a socket that cannot be used."""
        server = aio.server()
        ah_grpc.add_AdmitHandlerServicer_to_server(AsyncAdmitHandlerServicer(self._handler), server)
        healthy = health.aio.HealthServicer()
        for name in _NAMES:
            await healthy.set(name, health_pb2.HealthCheckResponse.SERVING)
        health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
        server.add_insecure_port(self._target)
        await server.start()
        self._server = server

    async def stop(self, grace: float = 2.0) -> None:
        """Stop taking calls, and let those in hand end within `grace` seconds."""
        if self._server is not None:
            await self._server.stop(grace)

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT, on an event loop of its own."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        async with self:
            await until_signalled()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()
