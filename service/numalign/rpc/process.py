"""Running the servers of one process until a signal ends them.

Separate from `server`, which knows one socket and no signals. SIGTERM and SIGINT stop in
order, a second one at once; SIGHUP reads the configuration again.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Sequence

from numalign.errors import NumalignError
from numalign.rpc.grpc_server import GrpcServer
from numalign.telemetry.logs import get_logger

_log = get_logger("process")
_STOP = (signal.SIGTERM, signal.SIGINT)

Reload = Callable[[], Awaitable[None]]


class ServiceProcess:
    """The servers of one process. `run` returns when they have stopped.

    `on_stop` is called when stopping begins, before calls are waited for: to end what would
    go on for ever (watches). `on_serving` is called when every server listens.
    """

    def __init__(
        self,
        servers: Sequence[GrpcServer],
        *,
        grace: float,
        reload: Reload | None = None,
        on_serving: Callable[[], None] | None = None,
        on_stop: Callable[[], None] | None = None,
    ) -> None:
        self._servers = tuple(servers)
        self._grace = grace
        self._reload = reload
        self._on_serving = on_serving
        self._on_stop = on_stop
        self._stopping = asyncio.Event()
        self._at_once = asyncio.Event()
        self._hang_up = asyncio.Event()

    async def run(self) -> None:
        """Listen, serve, stop. Raises what `GrpcServer.start` does, with nothing left open."""
        loop = asyncio.get_running_loop()
        for number in _STOP:
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up.set)
        reloading = asyncio.create_task(self._reload_on_signal())
        try:
            try:
                for server in self._servers:
                    await server.start()
            except BaseException:
                await self._stop_servers(0)
                raise
            for server in self._servers:
                _log.info("serving", address=server.address, services=list(server.services))
            if self._on_serving is not None:
                self._on_serving()
            await self._stopping.wait()
            _log.info("stopping", grace_seconds=self._grace)
            await self._stop_in_order()
            _log.info("stopped")
        finally:
            reloading.cancel()
            for number in (*_STOP, signal.SIGHUP):
                loop.remove_signal_handler(number)

    def stop(self) -> None:
        """Stop in order; called again: at once. What SIGTERM and SIGINT do."""
        if self._stopping.is_set():
            self._at_once.set()
        self._stopping.set()

    async def _stop_in_order(self) -> None:
        for server in self._servers:
            server.health.stop()
        if self._on_stop is not None:
            self._on_stop()
        in_order = asyncio.create_task(self._stop_servers(self._grace))
        second_signal = asyncio.create_task(self._at_once.wait())
        await asyncio.wait((in_order, second_signal), return_when=asyncio.FIRST_COMPLETED)
        if not in_order.done():
            await self._stop_servers(0)
        second_signal.cancel()
        await in_order

    async def _stop_servers(self, grace: float) -> None:
        await asyncio.gather(*(server.stop(grace) for server in self._servers))

    async def _reload_on_signal(self) -> None:
        while True:
            await self._hang_up.wait()
            self._hang_up.clear()
            if self._reload is None:
                _log.warning("SIGHUP is ignored: there is nothing to read again")
                continue
            try:
                await self._reload()
            except NumalignError as error:
                _log.error("reload refused, the configuration stays as it was", error=str(error))
            except Exception:
                _log.exception("reload failed")
