"""One service in a process of its own, as `numalign serve <service>` runs it.

Forked from a process that has imported the services and has no threads yet, because a replay
starts hundreds of them, and each would import for a second.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
from pathlib import Path

from numalign.config.settings import Service

_PRELOAD = [
    "numalign.process.serve",
    "numalign.process.single",
    "numalign.process.provider_parts",
    "numalign.process.topology_part",
    "numalign.process.admission_part",
]


class ServiceProcess:
    """A running service; what it writes goes to the file at `errors`."""

    def __init__(self, service: Service, config: Path, errors: Path) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_PRELOAD)
        self._process = context.Process(
            target=_serve, args=(service.value, str(config), str(errors)), daemon=True
        )
        self._process.start()

    async def wait(self) -> int:
        """Wait until it ends; the exit code, negative for the number of a signal."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(self._process.sentinel, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(self._process.sentinel)
        self._process.join()
        code = self._process.exitcode
        return 0 if code is None else code

    async def stop(self, seconds: float) -> int | None:
        """Ask it to stop; the exit code, or None where it had to be killed after `seconds`."""
        self._process.terminate()
        try:
            return await asyncio.wait_for(self.wait(), seconds)
        except TimeoutError:
            self._process.kill()
            await self.wait()
            return None


def _serve(service: str, config: str, errors: str) -> None:
    from numalign.process.serve import serve  # noqa: PLC0415 - the other side imports no service

    log = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    sys.exit(serve(Service(service), Path(config)))
