"""The health service: whether a server takes calls, as a whole and service by service.

Separate from the server, and ours rather than grpcio's: it also lists, its watches end when
the server stops (they would hold it up otherwise), and it is a plain servicer for any server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

from grpc import StatusCode
from grpc_health.v1 import health_pb2

from numalign.rpc.context import Context

_Status = health_pb2.HealthCheckResponse


class HealthServicer:
    """Answers for the empty name (the server) and for each service."""

    def __init__(self, services: Iterable[str]) -> None:
        self._serving = dict.fromkeys(("", *services), False)
        self._held: set[str] = set()
        self._changed = asyncio.Event()
        self._stopping = False

    def hold(self, service: str) -> None:
        """Let `service` not serve until it is told so by name."""
        self._held.add(service)
        self.set_serving(False, service)

    def set_serving(self, serving: bool, service: str | None = None) -> None:
        """Say whether `service`, or (None) the server with every service, takes calls.

        Ignored once the server is stopping.
        """
        if self._stopping:
            return
        if service is not None:
            self._serving[service] = serving
        else:
            self._serving |= dict.fromkeys(self._serving.keys() - self._held, serving)
        self._wake()

    def stop(self) -> None:
        """Nothing takes calls from now on; watches report that and end."""
        self._held.clear()
        self.set_serving(False)
        self._stopping = True
        self._wake()

    async def Check(  # noqa: N802  the contract's name
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> health_pb2.HealthCheckResponse:
        """The status now; NOT_FOUND for a service that is not served here."""
        if request.service not in self._serving:
            await context.abort(StatusCode.NOT_FOUND, f"unknown service {request.service}")
        return _Status(status=self._status(request.service))

    async def List(  # noqa: N802  the contract's name
        self, request: health_pb2.HealthListRequest, context: Context
    ) -> health_pb2.HealthListResponse:
        """The status of every service now."""
        del request, context
        statuses = {name: _Status(status=self._status(name)) for name in self._serving}
        return health_pb2.HealthListResponse(statuses=statuses)

    async def Watch(  # noqa: N802  the contract's name
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> AsyncIterator[health_pb2.HealthCheckResponse]:
        """The status now and whenever it changes, until the server stops."""
        del context
        last: int | None = None
        while True:
            changed = self._changed
            status = self._status(request.service)
            if status != last:
                last = status
                yield _Status(status=status)
            elif self._stopping:
                return
            else:
                await changed.wait()

    def _status(self, service: str) -> int:
        serving = self._serving.get(service)
        status: int = _Status.SERVICE_UNKNOWN
        if serving is not None:
            status = _Status.SERVING if serving else _Status.NOT_SERVING
        return status

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
