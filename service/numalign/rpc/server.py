"""One way to build and run a server on a Unix socket.

Separate from `process`, which runs the servers of one process until a signal comes. Every
server has health, reflection, the guard around each method, and an orderly stop.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from grpc import aio
from grpc_health.v1 import health_pb2_grpc

from numalign.config.settings import SocketSettings
from numalign.errors import ConfigError
from numalign.rpc.channel import MESSAGE_BYTES, METADATA_BYTES, socket_target
from numalign.rpc.guard import guarded
from numalign.rpc.health import HealthServicer
from numalign.rpc.methods import Registration, collect, to_handlers
from numalign.rpc.reflection import LazyReflection
from numalign.rpc.socket_file import claim, created_with, give
from numalign.telemetry.tracing import Tracer

_OPTIONS: tuple[tuple[str, Any], ...] = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.max_send_message_length", MESSAGE_BYTES),
    ("grpc.max_metadata_size", METADATA_BYTES),
    ("grpc.so_reuseport", 0),
    # A Unix socket says by itself when the other side is gone.
    ("grpc.keepalive_time_ms", 2**31 - 1),
)


class ServiceServer:
    """A server for some servicers on one socket: `start`, then `stop`, each once.

    `health` says whether it takes calls; `start` sets it to serving unless told otherwise.
    """

    def __init__(
        self,
        registrations: Iterable[Registration],
        path: Path,
        socket: SocketSettings,
        tracer: Tracer | None = None,
    ) -> None:
        """Build it; nothing is opened yet. Raises TypeError for a servicer of a wrong shape."""
        self.path = path
        self._socket = socket
        methods = [guarded(method, tracer) for method in collect(registrations)]
        self.services = tuple(dict.fromkeys(method.service for method in methods))
        self.health = HealthServicer(self.services)
        health = collect((Registration(health_pb2_grpc.add_HealthServicer_to_server, self.health),))
        self._handlers = to_handlers((*methods, *(guarded(method, None) for method in health)))
        self._server: aio.Server | None = None
        self._inode: int | None = None

    async def start(self, *, serving: bool = True) -> None:
        """Listen. Raises ConfigError or StartError naming the path when that is not possible."""
        claim(self.path, self._socket)
        reflection = LazyReflection(tuple(self._handlers))
        server = aio.server(handlers=(reflection,), options=_OPTIONS)
        for service, handlers in self._handlers.items():
            server.add_registered_method_handlers(service, handlers)
        try:
            with created_with(self._socket.mode):
                server.add_insecure_port(socket_target(self.path))
        except RuntimeError as error:
            raise ConfigError(f"socket {self.path}: cannot listen there: {error}") from error
        give(self.path, self._socket)
        self.path.chmod(self._socket.mode)
        self._inode = self.path.stat().st_ino
        await server.start()
        self._server = server
        self.health.set_serving(serving)

    async def stop(self, grace: float) -> None:
        """Take no more calls, and end the ones in hand after at most `grace` seconds.

        Health says NOT_SERVING first. Called again meanwhile, with less grace, it ends calls
        that much sooner.
        """
        self.health.stop()
        if self._server is None:
            return
        await self._server.stop(grace)
        # gRPC removes the socket; but one that a successor made meanwhile is not ours.
        if self.path.exists() and self.path.stat().st_ino == self._inode:
            self.path.unlink()
