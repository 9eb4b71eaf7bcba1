"""A command in a pod whose input and output are a connection: `kubectl exec`, while it lasts."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

_MOST_BYTES = 1 << 16
"""How long the line may be that it begins with."""


class Link:
    """A started command. `source` is what it says, `sink` what it is told."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        errors: asyncio.StreamReader,
    ) -> None:
        self.source = source
        self.sink = sink
        self._process = process
        self._errors = errors

    @classmethod
    async def start(cls, command: Sequence[str]) -> Self:
        """Start a command. Raises OSError."""
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_MOST_BYTES,
        )
        source, sink, errors = process.stdout, process.stdin, process.stderr
        if source is None or sink is None or errors is None:  # pragma: no cover - pipes were asked
            raise OSError("a process without streams")
        return cls(process, source, sink, errors)

    async def last_words(self) -> str:
        """What it wrote to standard error, once it has closed that."""
        return (await self._errors.read()).decode(errors="replace")

    def kill(self) -> None:
        """End it, whatever it does; `end` waits for it."""
        kill(self._process)

    async def end(self) -> None:
        """End it. Nobody else may be reading from it."""
        self.kill()
        # Its streams have to be read to their end, or the process is never seen to have gone.
        with suppress(ConnectionError):
            await self._process.communicate()


def kill(process: asyncio.subprocess.Process) -> None:
    """End a process, if it has not ended."""
    # Its own method would look whether it has ended, and take the exit code from who waits.
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
