"""Five services as five processes, for as long as the demonstration takes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from grpc.aio import AioRpcError
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub

from numalign.cli.calls import channel_to
from numalign.cli.endpoint import Endpoint
from numalign.config.settings import Service
from numalign.errors import Unavailable

_START_SECONDS = 20.0
_STOP_SECONDS = 10.0
_ORDER = (Service.DEVICE, Service.CPU, Service.MEMORY, Service.TOPOLOGY, Service.ADMISSION)


class Processes:
    """The processes. `exit_codes` are known once they have stopped."""

    def __init__(self, running: Mapping[Service, asyncio.subprocess.Process]) -> None:
        self.running = running
        self.exit_codes: dict[Service, int] = {}

    async def stop(self) -> None:
        """Ask all to stop in order; end those that do not."""
        for process in self.running.values():
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
        for service, process in self.running.items():
            try:
                self.exit_codes[service] = await asyncio.wait_for(process.wait(), _STOP_SECONDS)
            except TimeoutError:
                process.kill()
                self.exit_codes[service] = await process.wait()


@asynccontextmanager
async def five_processes(
    directory: Path, config: Path, otlp_endpoint: str
) -> AsyncGenerator[tuple[Processes, dict[Service, Path]]]:
    """Start the services with sockets and state below `directory`, and stop them in the end.

    Spans are exported to `otlp_endpoint`. Raises Unavailable with what a service said, if one
    does not start.
    """
    sockets = {service: directory / "run" / f"{service.value}.sock" for service in _ORDER}
    environment = _environment(otlp_endpoint)
    running: dict[Service, asyncio.subprocess.Process] = {}
    processes = Processes(running)
    try:
        for service in _ORDER:
            arguments = (
                *("-m", "numalign.cli", "serve", service.value, "--config", str(config)),
                *("--runtime-directory", str(directory / "run")),
                *("--state-directory", str(directory / "state")),
            )
            running[service] = await asyncio.create_subprocess_exec(
                sys.executable, *arguments, env=environment, stdin=asyncio.subprocess.DEVNULL
            )
        for service in _ORDER:
            await _healthy(service, running[service], sockets[service])
        yield processes, sockets
    finally:
        await processes.stop()


def _environment(otlp_endpoint: str) -> dict[str, str]:
    """The user's environment without what would change the demonstration."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL_", "NUMALIGN_"))
    }
    return {
        **kept,
        "OTEL_EXPORTER_OTLP_ENDPOINT": otlp_endpoint,
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        # A proxy for the outside world is no way to a receiver in this process.
        "no_proxy": "127.0.0.1",
    }


def _ready_when(service: Service) -> health_pb2.HealthCheckRequest:
    """What to ask: Admission serves by name once all that it needs is there."""
    name = "numalign.v1.Admission" if service is Service.ADMISSION else ""
    return health_pb2.HealthCheckRequest(service=name)


async def _healthy(service: Service, process: asyncio.subprocess.Process, socket: Path) -> None:
    deadline = asyncio.get_running_loop().time() + _START_SECONDS
    async with channel_to(Endpoint(socket)) as channel:
        stub = HealthStub(channel)
        while True:
            if process.returncode is not None:
                raise Unavailable(
                    f"the {service.value} service ended with exit code {process.returncode}"
                )
            try:
                health = await stub.Check(_ready_when(service), timeout=1)
            except AioRpcError as error:
                why = error.details()
            else:
                if health.status == health_pb2.HealthCheckResponse.SERVING:
                    return
                why = "it is not serving"
            if asyncio.get_running_loop().time() > deadline:
                raise Unavailable(f"the {service.value} service does not start: {why}")
            await asyncio.sleep(0.05)
