"""What every server has, wherever it listens: methods, health, reflection, limits, a stop.

Separate from the two that listen: `server` at a Unix socket, `tls_server` at a TCP port.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from grpc import aio
from grpc_health.v1 import health_pb2_grpc

from numalign.config.settings import LimitSettings
from numalign.rpc.call_clock import LOOK_SECONDS, CallClock
from numalign.rpc.call_stream.server import CallStreams
from numalign.rpc.channel import MESSAGE_BYTES, METADATA_BYTES
from numalign.rpc.guard import guarded
from numalign.rpc.health import HealthServicer
from numalign.rpc.methods import Registration, collect, to_handlers
from numalign.rpc.reflection import LazyReflection
from numalign.telemetry.logs import get_logger
from numalign.telemetry.spans import Tracer

_KEEPALIVE_SECONDS = 60
_KEEPALIVE_ANSWER_SECONDS = 20
_log = get_logger("rpc")


class GrpcServer(ABC):
    """A server for some servicers: `start`, then `stop`, each once.

    `health` says whether it takes calls; `start` sets it to serving unless told otherwise.
    `address` is where it listens, for people.
    """

    def __init__(
        self,
        registrations: Iterable[Registration],
        address: str,
        tracer: Tracer | None,
        limits: LimitSettings,
        *,
        call_streams: bool = False,
    ) -> None:
        """Build it; nothing is opened yet. Raises TypeError for a servicer of a wrong shape.

        With `call_streams` its unary calls may come over streams as well.
        """
        self.address = address
        self._limits = limits
        self._clock = CallClock(limits)
        longest = limits.call_timeout
        methods = [guarded(method, tracer, longest) for method in collect(registrations)]
        self.services = tuple(dict.fromkeys(method.service for method in methods))
        self.health = HealthServicer(self.services)
        health = collect((Registration(health_pb2_grpc.add_HealthServicer_to_server, self.health),))
        methods += [guarded(method, None, longest) for method in health]
        limited = [self._clock.limited(method) for method in methods]
        self._streams: CallStreams | None = None
        if call_streams:
            self._streams = CallStreams(methods, limits, MESSAGE_BYTES)
            # It stays open for good; the calls that it carries have limits of their own.
            limited.append(self._streams.method())
        self._handlers = to_handlers(limited)
        self._server: aio.Server | None = None
        self._looking: asyncio.Task[None] | None = None

    async def start(self, *, serving: bool = True) -> None:
        """Listen. Raises ConfigError or StartError naming the place when that is not possible."""
        self._claim()
        server = aio.server(
            handlers=(LazyReflection(tuple(self._handlers)),),
            options=_options(self._limits),
            maximum_concurrent_rpcs=self._limits.calls,
        )
        for service, handlers in self._handlers.items():
            server.add_registered_method_handlers(service, handlers)
        self._listen(server)
        await server.start()
        self._server = server
        self._looking = asyncio.create_task(self._look())
        self.health.set_serving(serving)

    async def stop(self, grace: float) -> None:
        """Take no more calls, and end the ones in hand after at most `grace` seconds.

        Health says NOT_SERVING first. Called again meanwhile, with less grace, it ends calls
        that much sooner.
        """
        self.health.stop()
        if self._streams is not None:
            self._streams.stop()
        if self._server is None:
            return
        await self._server.stop(grace)
        if self._looking is not None:
            self._looking.cancel()
        self._stopped()

    def _claim(self) -> None:  # noqa: B027 - not every place needs it
        """See that the place is free."""

    @abstractmethod
    def _listen(self, server: aio.Server) -> None:
        """Open the place."""

    def _check_peers(self) -> None:  # noqa: B027 - not every place needs it
        """Cut off who should not be connected."""

    def _stopped(self) -> None:  # noqa: B027 - not every place needs it
        """Leave nothing behind."""

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                self._clock.expire()
                self._check_peers()
            except Exception:
                # Limits must outlive whatever it was, such as a process without descriptors.
                _log.exception("calls and peers cannot be checked", address=self.address)


def _options(limits: LimitSettings) -> tuple[tuple[str, Any], ...]:
    return (
        ("grpc.max_receive_message_length", MESSAGE_BYTES),
        ("grpc.max_send_message_length", MESSAGE_BYTES),
        ("grpc.max_metadata_size", METADATA_BYTES),
        # More than calls: beyond calls a caller is told so, beyond this it waits untold.
        ("grpc.max_concurrent_streams", 2 * limits.calls),
        ("grpc.max_allowed_incoming_connections", limits.connections),
        ("grpc.server_handshake_timeout_ms", round(limits.handshake_timeout * 1000)),
        ("grpc.so_reuseport", 0),
        # A peer that is stopped keeps its connection open without a sign of life.
        ("grpc.keepalive_time_ms", _KEEPALIVE_SECONDS * 1000),
        ("grpc.keepalive_timeout_ms", _KEEPALIVE_ANSWER_SECONDS * 1000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    )
