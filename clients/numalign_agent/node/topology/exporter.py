"""Keeps the node's NodeResourceTopology up with what the services say."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign_agent.api.errors import ApiError
from numalign_agent.backoff import Backoff
from numalign_agent.node.failures import topology_trouble
from numalign_agent.node.metrics import API_FAILURES, TOPOLOGY_CONFIRMED, TOPOLOGY_CURRENT
from numalign_agent.node.settings import TopologySettings
from numalign_agent.node.topology.node_facts import FactsReader, NotTold
from numalign_agent.node.topology.objects import content
from numalign_agent.node.topology.published import NoTopologyKind, PublishedTopology
from numalign_agent.trouble import Troubles

_SERVICES, _API = "the services", "NodeResourceTopology"

_log = get_logger("node")


class TopologyExporter:
    """Writes after each change, not more often than told, and looks every so often."""

    def __init__(
        self,
        facts: FactsReader,
        published: PublishedTopology,
        node_name: str,
        settings: TopologySettings,
        metrics: Metrics,
        backoff: Backoff | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._facts = facts
        self._published = published
        self._node_name = node_name
        self._settings = settings
        self._current = metrics.gauge(TOPOLOGY_CURRENT)
        self._confirmed = metrics.gauge(TOPOLOGY_CONFIRMED)
        self._failures = metrics.counter(API_FAILURES)
        self._backoff = backoff or Backoff(1.0, 30.0)
        self._sleep = sleep
        self._now = now
        self._troubles = Troubles(_log)
        self._changed = asyncio.Event()
        self._has_written = False

    def problem(self) -> str | None:
        """Why the object does not say what it should; None where it does. For any thread."""
        troubles = self._troubles.current()
        if troubles:
            return "; ".join(troubles.values())
        return None if self._has_written else "not written yet"

    async def run(self) -> None:
        """Keep it up until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            tasks.create_task(self._write())

    async def end(self) -> None:
        """Take the object away where that is wanted."""
        if not self._settings.delete_at_end:
            return
        try:
            await self._published.delete()
        except ApiError as error:
            _log.warning(
                "the node's NodeResourceTopology stays",
                why=topology_trouble(error, self._node_name),
            )

    async def _follow(self) -> None:
        backoff = Backoff(0.2, 10.0)
        while True:
            try:
                async for _ in self._facts.changes():
                    backoff.succeeded()
                    self._changed.set()
            except NotTold as error:
                self._troubles.say(_SERVICES, str(error))
            await self._sleep(backoff.failed())

    async def _write(self) -> None:
        clock = asyncio.get_running_loop().time
        look_at = 0.0
        while True:
            wait = self._settings.interval
            self._changed.clear()
            look = clock() >= look_at
            try:
                await self._write_once(look=look)
            except NotTold as error:
                self._failed(_SERVICES, str(error))
                wait = max(wait, self._backoff.failed())
                # What was to be written still is, though nobody may tell of it again.
                self._changed.set()
            except ApiError as error:
                self._failures.labels("topology").inc()
                why = str(error)
                if not isinstance(error, NoTopologyKind):
                    why = topology_trouble(error, self._node_name)
                self._failed(_API, why)
                wait = max(wait, self._backoff.failed())
                look_at = 0.0
            else:
                if look:
                    look_at = clock() + self._settings.heartbeat
                self._mended()
            await self._sleep(wait)
            await self._wait_until(look_at)

    async def _write_once(self, *, look: bool) -> None:
        if look:
            self._facts.forget_machine()
        facts = await self._facts.read()
        self._troubles.mended(_SERVICES)
        made = content(
            facts.machine,
            facts.policy,
            facts.resources,
            facts.admissions,
            self._settings.counted,
        )
        if look or not self._published.is_written(made):
            await self._published.write(made, look=look)

    async def _wait_until(self, moment: float) -> None:
        """Until something may have changed, or the moment is there."""
        seconds = moment - asyncio.get_running_loop().time()
        if seconds <= 0:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    def _failed(self, what: str, why: str) -> None:
        self._current.set(0)
        self._troubles.say(what, why)

    def _mended(self) -> None:
        self._backoff.succeeded()
        self._current.set(1)
        # What tells who stands still from who has nothing to write: the other gauge stays as it is.
        self._confirmed.set(self._now())
        self._troubles.only({})
        self._has_written = True
