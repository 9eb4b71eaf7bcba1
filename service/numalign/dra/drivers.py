"""The DRA drivers that are registered: their plugins, and which one is asked (DRA-5 to DRA-11).

Separate from the connection to one plugin, and from who has claims prepared.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from numalign.dra import texts
from numalign.dra.driver_connection import DriverConnection, Observe
from numalign.dra.values import ClaimProblem
from numalign.dra.versions import chosen_service
from numalign.telemetry.logs import get_logger

Follow = Callable[[DriverConnection], Coroutine[Any, Any, None]]

_log = get_logger("dra-drivers")


class Drivers:
    """Every plugin by its driver, in order of registration. `followed` runs beside each."""

    def __init__(self, call_seconds: float, observe: Observe, followed: Follow) -> None:
        self._call_seconds = call_seconds
        self._observe = observe
        self._followed = followed
        self._plugins: dict[str, list[DriverConnection]] = {}
        self._tasks: dict[DriverConnection, list[asyncio.Task[None]]] = {}

    def add(self, driver: str, endpoint: Path, versions: Sequence[str]) -> None:
        """Take a plugin in. Raises ClaimProblem with the kubelet's text."""
        check_plugin(driver, endpoint, versions)
        plugins = self._plugins.setdefault(driver, [])
        if any(plugin.endpoint == endpoint for plugin in plugins):
            raise ClaimProblem(texts.registered_twice(driver, str(endpoint)))
        plugin = DriverConnection(
            driver,
            endpoint,
            chosen_service(versions),
            versions,
            self._call_seconds,
            self._observe,
        )
        plugins.append(plugin)
        work = [plugin.follow()]
        if plugin.tells_health:
            work.append(self._followed(plugin))
        self._tasks[plugin] = [asyncio.create_task(each) for each in work]
        for task in self._tasks[plugin]:
            task.add_done_callback(_tell)
        _log.info("driver registered", driver=driver, endpoint=str(endpoint))

    async def remove(self, driver: str, endpoint: Path) -> None:
        """Let a plugin go; an unknown one is no mistake (DRA-11)."""
        plugins = self._plugins.get(driver, [])
        for plugin in [plugin for plugin in plugins if plugin.endpoint == endpoint]:
            plugins.remove(plugin)
            if not plugins:
                del self._plugins[driver]
            await self._end(plugin)
            _log.info("driver deregistered", driver=driver, endpoint=str(endpoint))

    def is_registered(self, driver: str) -> bool:
        """Whether anybody is."""
        return driver in self._plugins

    def plugin_of(self, driver: str) -> DriverConnection:
        """Whom to ask: the last one that is connected, else the last one (DRA-8).

        Raises ClaimProblem.
        """
        plugins = self._plugins.get(driver)
        if not plugins:
            raise ClaimProblem(texts.not_registered(driver))
        return next((p for p in reversed(plugins) if p.connected), plugins[-1])

    def all(self) -> tuple[DriverConnection, ...]:
        """Every plugin, by driver, then in order of registration."""
        return tuple(p for _, plugins in sorted(self._plugins.items()) for p in plugins)

    async def close(self) -> None:
        """Let every plugin go."""
        plugins = self.all()
        self._plugins.clear()
        for plugin in plugins:
            await self._end(plugin)

    async def _end(self, plugin: DriverConnection) -> None:
        tasks = self._tasks.pop(plugin)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await plugin.close()


def check_plugin(driver: str, endpoint: Path, versions: Sequence[str]) -> None:
    """Raise ClaimProblem for a plugin that cannot be spoken to (DRA-5)."""
    if not driver:
        raise ClaimProblem(texts.not_registered(driver))
    try:
        chosen_service(versions)
    except ClaimProblem as problem:
        raise ClaimProblem(texts.bad_versions(driver, str(endpoint), str(problem))) from problem


def _tell(task: asyncio.Task[None]) -> None:
    """Say that a task which should never end has ended, and why."""
    if not task.cancelled():
        _log.error("a driver is not followed any more", exc_info=task.exception())
