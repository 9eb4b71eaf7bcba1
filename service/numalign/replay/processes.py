"""Every service in a process of its own, called over its socket: the way a node runs them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from grpc import aio

from numalign.config.settings import Service
from numalign.errors import ConfigError, StartError
from numalign.process.readiness import ADMISSION, serves
from numalign.process.refusal_text import read_refusal
from numalign.replay.in_process import RUN, STATE, write_config
from numalign.replay.service_process import ServiceProcess
from numalign.rpc.channel import open_channel
from numalign.v1.control_pb2 import GetStatusRequest, ReloadRequest
from numalign.v1.control_pb2_grpc import ControlStub

START_SECONDS = 60.0
"""How long a service may take to start."""

STOP_SECONDS = 20.0
"""How long a service may take to stop."""

_PROVIDERS = (Service.CPU, Service.MEMORY, Service.DEVICE)
_CALLERS = (Service.TOPOLOGY, Service.ADMISSION)
_REFUSALS = (Service.TOPOLOGY, *_PROVIDERS, Service.ADMISSION)
"""Whose refusal counts where several refuse: a kubelet puts its managers together in this order."""


class Processes:
    """A driver over five processes; everything they write is below `directory`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running: dict[Service, ServiceProcess] = {}
        self._channels: dict[Service, aio.Channel] = {}

    @property
    def state_directory(self) -> Path:
        """Where the services keep their state."""
        return self._directory / STATE

    async def open(self, document: Mapping[str, object]) -> None:
        """Start the providers, then those who call them; each is waited for.

        Raises StartError and ConfigError as a service said it, and TimeoutError for one that
        neither serves nor ends.
        """
        config = write_config(self._directory, document)
        (self._directory / RUN).mkdir(exist_ok=True)
        refusals = await self._start(_PROVIDERS, config)
        refusals |= await self._start(_CALLERS if not refusals else (Service.TOPOLOGY,), config)
        for service in _REFUSALS:
            if service in refusals:
                await self.close()
                raise refusals[service]

    async def reload(self, document: Mapping[str, object]) -> None:
        """Write the new document and ask for it to be read."""
        write_config(self._directory, document)
        await ControlStub(self.channel(Service.DEVICE)).Reload(ReloadRequest())

    def channel(self, service: Service) -> aio.Channel:
        """A channel to the socket of a service."""
        return self._channels[service]

    async def close(self) -> None:
        """Stop the processes in the order opposite to their start.

        Raises TimeoutError, once it is killed, for one that does not stop, and RuntimeError
        for one that ended with an error.
        """
        running, self._running = self._running, {}
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            await channel.close()
        codes = [await process.stop(STOP_SECONDS) for process in reversed(running.values())]
        for service, code in zip(reversed(running), codes, strict=True):
            if code is None:
                raise TimeoutError(f"service {service.value} did not stop")
            if code != 0:
                raise RuntimeError(f"service {service.value} ended with exit code {code}")

    async def _start(
        self, services: tuple[Service, ...], config: Path
    ) -> dict[Service, StartError | ConfigError]:
        for service in services:
            self._running[service] = ServiceProcess(service, config, self._errors(service))
        refusals = {}
        for service in services:
            refusal = await self._served(service)
            if refusal is not None:
                refusals[service] = refusal
                del self._running[service]
        if not refusals and Service.ADMISSION in services:
            admission = self.channel(Service.ADMISSION)
            await asyncio.wait_for(serves(admission, ADMISSION), START_SECONDS)
        return refusals

    async def _served(self, service: Service) -> StartError | ConfigError | None:
        """Wait until the service answers, or ends; then why."""
        channel = open_channel(self._directory / RUN / f"{service.value}.sock")
        self._channels[service] = channel
        ended = asyncio.create_task(self._running[service].wait())
        answer = asyncio.create_task(self._answer(channel))
        try:
            await asyncio.wait(
                (ended, answer), return_when=asyncio.FIRST_COMPLETED, timeout=START_SECONDS
            )
            if ended.done():
                return _refusal(self._errors(service).read_text(encoding="utf-8"))
            if not answer.done():
                raise TimeoutError(f"service {service.value} did not start")
            answer.result()
            return None
        finally:
            ended.cancel()
            answer.cancel()
            await asyncio.gather(ended, answer, return_exceptions=True)

    @staticmethod
    async def _answer(channel: aio.Channel) -> None:
        await ControlStub(channel).GetStatus(
            GetStatusRequest(), wait_for_ready=True, timeout=START_SECONDS
        )

    def _errors(self, service: Service) -> Path:
        return self._directory / f"{service.value}.err"


def _refusal(text: str) -> StartError | ConfigError:
    """What a process said before it ended, by lines of the command; those of the log are JSON.

    Raises RuntimeError with all of it for one that broke down.
    """
    if "Traceback" in text:
        raise RuntimeError(f"a service broke down: {text}")
    lines = [line for line in text.splitlines() if line and not line.startswith("{")]
    return read_refusal(lines)
