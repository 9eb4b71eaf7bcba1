"""The plugin watcher: finds plugins by their sockets, takes them in, lets them go (DEV-9).

Separate from what a plugin is taken in for: a handler per type is handed in. Several watchers
may look at one directory, each for other types.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from numalign.plugins import texts
from numalign.plugins.probe import Found, PluginProbe, ProbeFailed
from numalign.plugins.sockets import watched_sockets
from numalign.plugins.watch_plan import Identity, Wait, longer, plan
from numalign.telemetry.logs import get_logger

TICK_SECONDS = 1.0
"""How often the directory is looked at."""

_log = get_logger("plugin-watcher")


def _nowhere(type_: str) -> bool:  # noqa: ARG001 - a default
    return False


class PluginRefused(Exception):
    """A handler does not take a plugin in; the message says why."""


class PluginHandler(Protocol):
    """What becomes of the plugins of one type."""

    def validate(self, found: Found) -> None:
        """Look at a plugin before anything else. Raises PluginRefused."""

    async def register(self, found: Found) -> None:
        """Take it in. Raises PluginRefused."""

    async def deregister(self, found: Found) -> None:
        """Its socket is gone."""


@dataclass(frozen=True, slots=True)
class _Registered:
    identity: Identity
    found: Found


class PluginWatcher:
    """Watches one directory. `run` works until it is cancelled; `look` is one round of it.

    Plugins of a type for which `elsewhere` is true are taken in by somebody else: they are told
    nothing here. Any other type without a handler is refused.
    """

    def __init__(
        self,
        directory: Path,
        handlers: Mapping[str, PluginHandler],
        tick: float = TICK_SECONDS,
        elsewhere: Callable[[str], bool] = _nowhere,
    ) -> None:
        self._directory = directory
        self._handlers = handlers
        self._tick = tick
        self._elsewhere = elsewhere
        self._registered: dict[Path, _Registered] = {}
        self._waits: dict[Path, Wait] = {}
        self._working: dict[Path, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Look, and look again."""
        try:
            while True:
                self.look()
                await asyncio.sleep(self._tick)
        finally:
            for task in self._working.values():
                task.cancel()
            await asyncio.gather(*self._working.values(), return_exceptions=True)

    def look(self) -> None:
        """Begin whatever is due; what is begun goes on by itself, one thing a path at a time."""
        try:
            there = watched_sockets(self._directory)
        except OSError as error:
            _log.warning("plugin directory cannot be read", error=str(error))
            return
        now = asyncio.get_running_loop().time()
        known = {path: registered.identity for path, registered in self._registered.items()}
        for path in self._waits.keys() - there.keys():
            del self._waits[path]
        due = plan(there, known, self._waits, now).without(self._working)
        for path in due.unregister:
            self._begin(path, self._unregister(path))
        for path in due.register:
            self._begin(path, self._register(path, there[path]))

    async def idle(self) -> None:
        """Wait until nothing that was begun goes on."""
        while self._working:
            await asyncio.wait(tuple(self._working.values()))

    def _begin(self, path: Path, work: Awaitable[None]) -> None:
        async def do() -> None:
            try:
                await work
            except Exception as error:
                # It is tried again like any other failure.
                _log.exception("plugin failed", socket=str(path))
                self._failed(path, str(error))
            finally:
                del self._working[path]

        self._working[path] = asyncio.create_task(do())

    async def _unregister(self, path: Path) -> None:
        found = self._registered.pop(path).found
        handler = self._handlers.get(found.type)
        if handler is not None:
            _log.info("plugin is gone", type=found.type, plugin=found.name, socket=str(path))
            await handler.deregister(found)

    async def _register(self, path: Path, identity: Identity) -> None:
        try:
            async with PluginProbe(path) as probe:
                await self._take_in(path, identity, probe)
        except ProbeFailed as error:
            self._failed(path, str(error))
        else:
            self._waits.pop(path, None)

    async def _take_in(self, path: Path, identity: Identity, probe: PluginProbe) -> None:
        found = await probe.find()
        handler = self._handlers.get(found.type)
        if handler is None and self._elsewhere(found.type):
            self._registered[path] = _Registered(identity, found)
            return
        if handler is None:
            await self._refuse(probe, texts.no_handler(found.type, str(path)))
            return
        try:
            handler.validate(found)
        except PluginRefused as refused:
            await self._refuse(probe, texts.validation_failed(str(refused)))
            return
        self._registered[path] = _Registered(identity, found)
        try:
            await handler.register(found)
        except PluginRefused as refused:
            del self._registered[path]
            await self._refuse(probe, texts.registration_failed(str(refused)))
            return
        try:
            await probe.notify(None)
        except ProbeFailed:
            del self._registered[path]
            await handler.deregister(found)
            raise

    async def _refuse(self, probe: PluginProbe, why: str) -> None:
        await probe.notify(why)
        raise ProbeFailed(why)

    def _failed(self, path: Path, why: str) -> None:
        now = asyncio.get_running_loop().time()
        self._waits[path] = longer(self._waits.get(path), now)
        _log.warning("plugin not taken in", socket=str(path), why=why)
