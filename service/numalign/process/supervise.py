"""Every service as a process of one command: started together, kept up, stopped together.

Separate from `serve`, which runs services in its own process. What a pod's container manager
does for sidecars, this does where there is none.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from numalign.config.loader import load_settings
from numalign.config.settings import Service
from numalign.rpc.peers import credentials_of
from numalign.telemetry.logs import configure_logs, get_logger

STOPPING_SECONDS = 15.0
"""How long a service may take to stop before it is ended; more than it gives its own calls."""

FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 15.0
_LOOK_SECONDS = 0.1

_ORDER = (
    Service.DRA,
    Service.DEVICE,
    Service.CPU,
    Service.MEMORY,
    Service.TOPOLOGY,
    Service.ADMISSION,
)
_OPTIONS = {"runtimeDirectory": "--runtime-directory", "stateDirectory": "--state-directory"}
_log = get_logger("supervise")


def serve_processes(config: Path | None, overrides: Mapping[str, object]) -> int:
    """Serve every service in a process of its own, until a signal; the exit code.

    `config` is the configuration file; `overrides` may replace `runtimeDirectory` and
    `stateDirectory`. A service that ends by itself is started again; one that ends with an
    error before it ever listened ends the others, and the exit code is 1. Raises ConfigError.
    """
    settings = load_settings(config, os.environ, os.geteuid() == 0, overrides)
    configure_logs(settings.log.format.value, settings.log.level.value)
    sockets = {service: settings.endpoints[service] for service in settings.services}
    return asyncio.run(Supervisor(command_of(config, overrides), sockets).run())


def command_of(
    config: Path | None, overrides: Mapping[str, object]
) -> Callable[[Service], tuple[str, ...]]:
    """The command line of each service."""
    options: list[str] = [] if config is None else ["--config", str(config)]
    for key, value in overrides.items():
        options += [_OPTIONS[key], str(value)]
    return lambda service: (
        *(sys.executable, "-m", "numalign.cli", "serve", service.value),
        *options,
    )


class Supervisor:
    """Runs a command for each service until SIGTERM or SIGINT; SIGHUP is passed on.

    `sockets` are the services to run, and where they listen once they have started.
    """

    def __init__(
        self, command: Callable[[Service], tuple[str, ...]], sockets: Mapping[Service, Path]
    ) -> None:
        self._command = command
        self._sockets = sockets
        self._served: set[Service] = set()
        self._running: dict[Service, asyncio.subprocess.Process] = {}
        self._stopping = asyncio.Event()
        self._failed = False

    async def run(self) -> int:
        """Start, keep up, stop; 0 if every service stopped in order."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        loop.add_signal_handler(signal.SIGHUP, self._pass_on, signal.SIGHUP)
        try:
            async with asyncio.TaskGroup() as group:
                for service in (service for service in _ORDER if service in self._sockets):
                    group.create_task(self._keep(service))
        finally:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.remove_signal_handler(number)
        return 1 if self._failed else 0

    def _stop(self) -> None:
        """Stop in order; called again: at once."""
        self._pass_on(signal.SIGKILL if self._stopping.is_set() else signal.SIGTERM)
        self._stopping.set()

    def _pass_on(self, number: signal.Signals) -> None:
        for process in self._running.values():
            if process.returncode is None:
                process.send_signal(number)

    async def _keep(self, service: Service) -> None:
        """Run one service, again and again, until everything stops."""
        clock = asyncio.get_running_loop().time
        wait = FIRST_WAIT_SECONDS
        while not self._stopping.is_set():
            began = clock()
            code = await self._run(service)
            lived = clock() - began
            if self._stopping.is_set():
                # A service that had no time yet to mind the signal did as it was told as well.
                self._failed |= code not in {0, -signal.SIGTERM}
                return
            if code > 0 and service not in self._served:
                # It has said on standard error what prevents its start.
                _log.error("service cannot be started", service=service.value, exit_code=code)
                self._failed = True
                self._stop()
                return
            wait = FIRST_WAIT_SECONDS if lived > LONGEST_WAIT_SECONDS else wait
            _log.error(
                "service ended and is started again",
                service=service.value,
                exit_code=code,
                wait_seconds=wait,
            )
            await self._pause(wait)
            wait = min(2 * wait, LONGEST_WAIT_SECONDS)

    async def _run(self, service: Service) -> int:
        """One life of a service; its exit code, negative for a signal."""
        process = await asyncio.create_subprocess_exec(
            *self._command(service),
            # A terminal's Ctrl-C comes here, and is passed on once.
            process_group=0,
        )
        self._running[service] = process
        if self._stopping.is_set():
            process.send_signal(signal.SIGTERM)
        ended = asyncio.ensure_future(process.wait())
        listening = asyncio.ensure_future(self._note_serving(service, process.pid))
        stopping = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait((ended, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            await asyncio.wait((ended,), timeout=STOPPING_SECONDS)
        if not ended.done():
            _log.error("service does not stop and is ended", service=service.value)
            process.kill()
        stopping.cancel()
        listening.cancel()
        return await ended

    async def _note_serving(self, service: Service, pid: int) -> None:
        """Wait until the service listens for the first time."""
        while service not in self._served:
            # Who else listens there keeps the service from starting.
            if await _listener(self._sockets[service]) == pid:
                self._served.add(service)
            else:
                await asyncio.sleep(_LOOK_SECONDS)

    async def _pause(self, seconds: float) -> None:
        stopping = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait((stopping,), timeout=seconds)
        stopping.cancel()


async def _listener(path: Path) -> int | None:
    """The pid of the process that listens at a socket; None where nobody does."""
    try:
        _, writer = await asyncio.open_unix_connection(path)
    except OSError:
        return None
    try:
        pid, _, _ = credentials_of(writer.get_extra_info("socket"))
    finally:
        writer.close()
    return pid
