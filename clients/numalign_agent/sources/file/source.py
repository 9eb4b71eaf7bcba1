"""The file source: lists now and then, and watches in between (CFG-2, CFG-6, CFG-7)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path

from numalign.telemetry.logs import get_logger
from numalign_agent.backoff import Backoff
from numalign_agent.sources.file.reading import FileEvent, ManifestFiles
from numalign_agent.sources.port import Deliver
from numalign_agent.sources.reading import Reading
from numalign_agent.trouble import Troubles

NAME = "file"
LOOK_EVERY = 1.0
"""Seconds after which a watch that has seen nothing looks whether its directory is the same."""

_log = get_logger("agent.sources.file")


class FileSource:
    """Delivers the static pods at `path`, a directory or one manifest, every `every` seconds.

    What changes in between is noticed at once where the system can tell. A directory that is
    deleted and made again is watched again.
    """

    name = NAME

    def __init__(self, path: Path, node_name: str, every: float = 20.0) -> None:
        self._path = Path(path)
        self._every = every
        self._files = ManifestFiles(self._path, node_name)
        self._turn = asyncio.Lock()
        self._troubles = Troubles(_log)

    def problems(self) -> Mapping[str, str]:
        """Manifests that give no pod, and why."""
        return self._troubles.current()

    async def run(self, deliver: Deliver) -> None:
        """List at start and then every so often, and watch; until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._list_for_ever(deliver))
            tasks.create_task(self._watch_for_ever(deliver))

    async def _list_for_ever(self, deliver: Deliver) -> None:
        while True:
            await self._list(deliver)
            await asyncio.sleep(self._every)

    async def _watch_for_ever(self, deliver: Deliver) -> None:
        backoff = Backoff(1.0, 20.0)
        while True:
            wait = LOOK_EVERY
            try:
                if self._path.exists():
                    await self._watch(deliver)
                    backoff.succeeded()
                    wait = 0.0
            except OSError as error:
                wait = backoff.failed()
                _log.warning("cannot watch", place=str(self._path), why=str(error), retry_in=wait)
            await asyncio.sleep(wait)
            await self._list(deliver)

    async def _watch(self, deliver: Deliver) -> None:
        """Take in changes until what stands at the path is another directory, or nothing."""
        watched = self._identity()
        is_directory = self._path.is_dir()
        # A file is replaced as often as it is written to, so its directory is what is watched.
        place = self._path if is_directory else self._path.parent
        first = True
        async with aclosing(_changes(place)) as batches:
            async for paths in batches:
                if is_directory and self._identity() != watched:
                    return
                if first:  # what happened before the watch had begun
                    first = False
                    await self._list(deliver)
                for path in paths:
                    await self._change(path, is_directory, deliver)

    async def _change(self, path: Path, is_directory: bool, deliver: Deliver) -> None:
        if not is_directory:
            if path == self._path:
                await self._list(deliver)
            return
        async with self._turn:
            await self._take(await asyncio.to_thread(self._look_at, path), deliver)

    def _look_at(self, path: Path) -> Reading:
        # By what there is, since a file that was replaced is reported as deleted, too.
        event = FileEvent.MODIFY if os.path.lexists(path) else FileEvent.DELETE
        return self._files.change(event, path)

    async def _list(self, deliver: Deliver) -> None:
        async with self._turn:
            await self._take(await asyncio.to_thread(self._files.list), deliver)

    async def _take(self, reading: Reading, deliver: Deliver) -> None:
        self._troubles.only(self._files.problems)
        if reading.pods is not None:
            await deliver(reading.pods)

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino


async def _changes(place: Path) -> AsyncGenerator[list[Path]]:
    """Paths of files directly in `place` that changed, and nothing every `LOOK_EVERY` seconds."""
    from watchfiles import awatch  # noqa: PLC0415 - only an agent with this source needs it

    watching = awatch(
        place,
        watch_filter=lambda _, path: not Path(path).name.startswith("."),
        recursive=False,
        debounce=200,
        step=20,
        rust_timeout=int(LOOK_EVERY * 1000),
        yield_on_timeout=True,
    )
    try:
        async for changes in watching:
            yield sorted({place / Path(path).name for _, path in changes})
    except RuntimeError as error:  # its own word for what the system refuses, such as a limit
        raise OSError(str(error)) from error
