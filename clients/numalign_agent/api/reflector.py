"""Keeping a copy of one list of an API server: list, then watch, again and again (CFG-14)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numalign.telemetry.logs import get_logger
from numalign_agent.api.errors import ApiError, Refused, Unreachable
from numalign_agent.api.failures import explained
from numalign_agent.api.objects import Objects
from numalign_agent.api.server import ApiServer
from numalign_agent.backoff import Backoff
from numalign_agent.trouble import Troubles

Json = Mapping[str, Any]
Told = Callable[[tuple[Json, ...]], Awaitable[None]]

PAGE = 500
"""Objects that are asked for at a time."""

_log = get_logger("agent.api")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long things may take, in seconds.

    `watch`: until the server ends a watch, in whole seconds. `idle`: without a word of it, before
    it is taken to be dead. `first` and `longest`: the pauses before what failed is tried again.
    """

    watch: float = 300.0
    idle: float = 120.0
    first: float = 0.8
    longest: float = 30.0


class Reflector:
    """Tells `told` all objects of a list, whenever one of them changed.

    While `told` takes its time further changes are collected. While the server cannot be reached
    nothing is told, so that what was last known stays.
    """

    def __init__(
        self,
        server: ApiServer,
        path: str,
        field_selector: str,
        told: Told,
        pace: Pace | None = None,
    ) -> None:
        self._server = server
        self._path = path
        self._query = {"fieldSelector": field_selector} if field_selector else {}
        self._told = told
        self._pace = pace or Pace()
        self._objects = Objects()
        self._backoff = Backoff(self._pace.first, self._pace.longest)
        self._changed = asyncio.Event()
        self._place = server.address
        self._is_watching = False
        self._troubles = Troubles(_log)

    def problems(self) -> Mapping[str, str]:
        """Why the server cannot be read at present; empty when it can."""
        return self._troubles.current()

    async def run(self) -> None:
        """Follow the list until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            tasks.create_task(self._tell())

    async def _tell(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._told(self._objects.current())

    async def _follow(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            self._is_watching = False
            try:
                await self._list_unless_known()
                await self._watch()
            except ApiError as error:
                self._note(error)
            if clock() - began >= self._pace.longest:  # a long quiet watch was no failure
                self._backoff.succeeded()
            await asyncio.sleep(self._backoff.failed())

    async def _list_unless_known(self) -> None:
        if self._objects.version:
            return
        items: list[Json] = []
        query = {**self._query, "limit": str(PAGE)}
        while True:
            page = await self._server.get(self._path, query)
            metadata = page.get("metadata") or {}
            items += page.get("items") or ()
            if not metadata.get("continue"):
                break
            query["continue"] = metadata["continue"]
        version = metadata.get("resourceVersion")
        if not version:
            raise ApiError(f"{self._path}: the list has no version to watch from")
        self._objects.replace(items, version)
        self._troubles.mended(self._place)
        self._changed.set()

    async def _watch(self) -> None:
        """Take in events until the server ends the watch."""
        query = {
            **self._query,
            "resourceVersion": self._objects.version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(round(self._pace.watch)),
        }
        async with self._server.watch(self._path, query, self._pace.idle) as events:
            self._is_watching = True
            self._troubles.mended(self._place)
            async for event in events:
                if self._objects.apply(event):
                    self._changed.set()
                self._backoff.succeeded()

    def _note(self, error: ApiError) -> None:
        """Whatever is not a line that broke begins with a new list."""
        if isinstance(error, Unreachable) and self._is_watching:
            # Watches do break; it is a trouble once no new one can be had.
            _log.debug("a watch broke", place=self._place, why=str(error))
            return
        if not isinstance(error, Unreachable):
            self._objects.version = ""
        if isinstance(error, Refused) and error.is_gone:
            _log.info("too old to go on from, listing anew", place=self._place, path=self._path)
        else:
            self._troubles.say(self._place, explained(error))
