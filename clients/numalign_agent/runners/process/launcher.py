"""The agent's side of the launcher: has shims forked, and hears when they are under way."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

from numalign_agent.runners.port import RunnerFailed
from numalign_agent.runners.process import shim

ANSWER_SECONDS = 30.0


class Launcher:
    """One launcher process, started when it is first needed and whenever it is gone."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._starting = asyncio.Lock()

    async def launch(self, directory: Path) -> None:
        """Start the container of this directory: when this returns its files say how it went.

        Raises RunnerFailed where no launcher can be started, or nothing is heard in time.
        """
        process = await self._running()
        answer = asyncio.get_running_loop().create_future()
        key = str(directory)
        self._waiting[key] = answer
        try:
            if process.stdin is None:
                raise RunnerFailed("the launcher has no standard input")
            process.stdin.write(f"{key}\n".encode())
            await process.stdin.drain()
            async with asyncio.timeout(ANSWER_SECONDS):
                await answer
        except TimeoutError as error:
            raise RunnerFailed(f"{directory}: no word from the container's shim") from error
        except ConnectionError as error:
            raise RunnerFailed(f"the launcher is gone: {error}") from error
        finally:
            self._waiting.pop(key, None)

    async def close(self) -> None:
        """Let the launcher end; shims go on."""
        if self._process is None or self._process.stdin is None:
            return
        self._process.stdin.close()
        await self._process.wait()
        if self._listening is not None:
            await self._listening

    async def _running(self) -> asyncio.subprocess.Process:
        async with self._starting:
            if self._process is None or self._process.returncode is not None:
                try:
                    self._process = await asyncio.create_subprocess_exec(
                        sys.executable,
                        "-I",
                        "-S",
                        shim.__file__,
                        stdin=asyncio.subprocess.PIPE,
                        stdout=asyncio.subprocess.PIPE,
                        start_new_session=True,
                    )
                except OSError as error:
                    raise RunnerFailed(f"no launcher: {error.strerror}") from error
                listening = self._listen(self._process)
                self._listening = asyncio.get_running_loop().create_task(listening)
            return self._process

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        if process.stdout is None:
            return
        async for line in process.stdout:
            answer = self._waiting.get(line.decode().rstrip("\n"))
            if answer is not None and not answer.done():
                answer.set_result(None)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(RunnerFailed("the launcher ended"))
        with contextlib.suppress(ProcessLookupError):
            await process.wait()
