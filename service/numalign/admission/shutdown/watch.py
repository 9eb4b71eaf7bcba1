"""Following the announcements of a shutdown, and delaying it while admitted pods end.

The kubelet's manager (SHUT-2, SHUT-3) without what ends pods: that is the agent's. The delay is
held until no pod is admitted any more, or for as long as the grace periods add up to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from numalign.admission.shutdown.port import Announcer, AnnouncerGone, Delay, OpenAnnouncer
from numalign.errors import Unavailable
from numalign.telemetry.logs import get_logger

LOOK_SECONDS = 1.0
"""How often it is looked whether pods are left."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two attempts to reach the announcer."""

_log = get_logger("node-shutdown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Whom a watch tells, and asks.

    `shutting_down` hears of every change; `pods_left` says whether pods are admitted.
    """

    shutting_down: Callable[[bool], None]
    pods_left: Callable[[], Awaitable[bool]]


class ShutdownWatch:
    """Watches from `start` to `close`. `grace` is the sum of the grace periods, in seconds."""

    def __init__(
        self,
        open_announcer: OpenAnnouncer,
        told: Told,
        grace: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._open = open_announcer
        self._told = told
        self._grace = grace
        self._sleep = sleep
        self._watching: asyncio.Task[None] | None = None
        self._lock: Delay | None = None
        self._holding: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, if it has not begun."""
        if self._watching is None:
            self._watching = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """End it; nothing is delayed any more, and no shutdown known."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None
        self._told.shutting_down(False)

    async def _run(self) -> None:
        pause, failed_before = FIRST_PAUSE, False
        while True:
            try:
                async with self._open() as announcer:
                    await self._follow(announcer)
                    pause, failed_before = FIRST_PAUSE, False
                    await self._announced(announcer)
            except AnnouncerGone as gone:
                if not failed_before:
                    _log.warning("node shutdown is not announced", why=str(gone))
                failed_before = True
            finally:
                await self._let_go()
            await self._sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _follow(self, announcer: Announcer) -> None:
        """Take the lock, and the state that is already announced."""
        longest = await announcer.longest_delay()
        if longest < self._grace:
            _log.warning(
                "a shutdown is delayed for less than the grace periods; raise InhibitDelayMaxSec "
                "in logind.conf",
                delay_seconds=longest,
                grace_seconds=self._grace,
            )
        if await announcer.is_preparing():
            # It is too late for a lock.
            self._told.shutting_down(True)
            return
        self._told.shutting_down(False)
        self._lock = await announcer.delay()
        _log.info("node shutdown is watched", delay_seconds=longest)

    async def _announced(self, announcer: Announcer) -> None:
        async for shutting_down in announcer.announcements():
            self._told.shutting_down(shutting_down)
            if shutting_down:
                self._hold()
            else:
                await self._let_go()
                self._lock = await announcer.delay()

    def _hold(self) -> None:
        if self._holding is None:
            self._holding = asyncio.get_running_loop().create_task(self._hold_while_pods_end())

    async def _hold_while_pods_end(self) -> None:
        try:
            async with asyncio.timeout(self._grace):
                while await self._pods_left():
                    await self._sleep(LOOK_SECONDS)
        except TimeoutError:
            _log.warning("pods are left at the end of the grace periods")
        finally:
            self._release()

    async def _pods_left(self) -> bool:
        try:
            return await self._told.pods_left()
        except Unavailable:
            # Nobody can say; the grace periods end it.
            return True

    async def _let_go(self) -> None:
        holding, self._holding = self._holding, None
        if holding is not None:
            holding.cancel()
            await asyncio.gather(holding, return_exceptions=True)
        self._release()

    def _release(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()
