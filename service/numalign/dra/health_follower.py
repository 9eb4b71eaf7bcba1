"""Following the health streams of drivers, and telling who watches (DRA-34 to DRA-38)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from numalign.dra.claim_book import ClaimBook
from numalign.dra.driver_connection import DriverConnection, DriverFailed
from numalign.dra.health import Device, Health, HealthBook, Report, Source
from numalign.dra.values import ClaimKey
from numalign.telemetry.logs import get_logger

RETRY_SECONDS = 5.0
"""How long after the end of a stream it is opened again."""

LOOK_SECONDS = 1.0
"""How often those who watch are told of what changed because claims or time did."""

_log = get_logger("dra-health")


@dataclass(frozen=True, slots=True, order=True)
class Unwell:
    """A device of a claim that is not healthy."""

    claim: ClaimKey
    driver: str
    pool: str
    device: str
    health: Health
    message: str


class HealthFollower:
    """The health of the node's claimed devices."""

    def __init__(self, book: ClaimBook, retry: float = RETRY_SECONDS) -> None:
        self._book = book
        self._retry = retry
        self._health = HealthBook()
        self._changed = asyncio.Event()

    async def follow(self, plugin: DriverConnection) -> None:
        """Follow one plugin until it is deregistered, which cancels this."""
        source = Source(plugin.driver, str(plugin.endpoint))
        try:
            while True:
                try:
                    async for reports in plugin.health():
                        self._set(self._health.heard(source, reports, self._now()))
                    why = "the stream ended"
                except DriverFailed as error:
                    why = str(error)
                _log.warning("health is not told", driver=plugin.driver, why=why)
                self._set(self._health.ended(source))
                await asyncio.sleep(self._retry)
        finally:
            self._set(self._health.ended(source))

    def unwell(self) -> tuple[Unwell, ...]:
        """Every device of a claim that is not healthy now, of drivers that tell health at all."""
        now = self._now()
        return tuple(
            sorted(
                Unwell(key, driver, device.pool, device.device, word.health, word.message)
                for key, info in self._book.claims.items()
                for driver, device in info.device_list()
                if (word := self._word(driver, device.pool, device.device, now)) is not None
                and word.health is not Health.HEALTHY
            )
        )

    async def watch(self) -> AsyncIterator[tuple[Unwell, ...]]:
        """What `unwell` says now, and again whenever it has changed."""
        told: tuple[Unwell, ...] | None = None
        while True:
            self._changed.clear()
            unwell = self.unwell()
            if unwell != told:
                told = unwell
                yield unwell
            waiting = asyncio.ensure_future(self._changed.wait())
            await asyncio.wait((waiting,), timeout=LOOK_SECONDS)
            waiting.cancel()

    def _word(self, driver: str, pool: str, device: str, now: float) -> Report | None:
        return self._health.of(driver, Device(pool, device), now)

    def _set(self, health: HealthBook) -> None:
        self._health = health
        self._changed.set()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
