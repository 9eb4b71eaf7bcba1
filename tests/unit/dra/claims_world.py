"""A claim manager over a real state file, with drivers that are objects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from tests.unit.dra.dra_values import A, device, fetched, pod

from numalign.dra import texts
from numalign.dra.answers import Entry
from numalign.dra.claim_book import ClaimBook, open_book
from numalign.dra.claim_manager import ClaimManager, PodToPrepare
from numalign.dra.drivers import Drivers
from numalign.dra.observer import ClaimObserver
from numalign.dra.values import ClaimInfo, ClaimProblem
from numalign.model.ids import PodUid
from numalign.store.database import Database
from numalign.store.provider_store import ProviderStore
from numalign.telemetry.kubelet_metrics import DRA
from numalign.telemetry.metrics import Metrics


class Plugin:
    """A driver. `answers` replaces what it says of claims by UID; None: no entry at all."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []
        self.answers: dict[str, Entry | None] = {}
        self.extra: dict[str, Entry] = {}
        self.fails: Exception | None = None
        self.waits: asyncio.Event | None = None

    async def prepare(self, claims: Iterable[ClaimInfo]) -> dict[str, Entry]:
        return await self._answer("prepare", claims)

    async def unprepare(self, claims: Iterable[ClaimInfo]) -> dict[str, Entry]:
        return await self._answer("unprepare", claims)

    async def _answer(self, call: str, claims: Iterable[ClaimInfo]) -> dict[str, Entry]:
        uids = [str(info.uid) for info in claims]
        self.asked.append((call, uids))
        if self.waits is not None:
            await self.waits.wait()
        if self.fails is not None:
            raise self.fails
        entries = {uid: self.answers.get(uid, Entry(devices=(device(uid),))) for uid in uids}
        return {uid: e for uid, e in entries.items() if e is not None} | self.extra


class Registered(dict[str, Plugin]):
    """The drivers that are there."""

    def is_registered(self, driver: str) -> bool:
        return driver in self

    def plugin_of(self, driver: str) -> Plugin:
        if driver not in self:
            raise ClaimProblem(texts.not_registered(driver))
        return self[driver]


class World:
    """One life of the service."""

    def __init__(self, book: ClaimBook, drivers: Registered, metrics: Metrics) -> None:
        self.book = book
        self.drivers = drivers
        self.metrics = metrics
        self.manager = ClaimManager(book, cast("Drivers", drivers), ClaimObserver(metrics))

    async def prepare(
        self, *claims: str, uid: PodUid = A, drivers: tuple[str, ...] = ("d",)
    ) -> Any:
        """Have claims of these drivers prepared for a pod that refers to all of them."""
        asked = PodToPrepare(
            pod=pod(*claims, references=tuple((f"k{i}", "") for i in range(len(claims))), uid=uid),
            fetched={name: fetched(name, *drivers) for name in claims},
            revision=1,
        )
        return await self.manager.prepare(asked)

    async def problem(self, *claims: str, **how: Any) -> str:
        """What stands in the way."""
        try:
            await self.prepare(*claims, **how)
        except ClaimProblem as problem:
            return str(problem)
        return ""


@asynccontextmanager
async def opened(
    directory: Path, drivers: Registered | None = None, boot: str = "boot-1"
) -> AsyncIterator[World]:
    database = Database.open(directory, "dra", report=lambda _: None)
    metrics = Metrics(DRA, enabled=True)
    try:
        book = await open_book(ProviderStore(database, "dra", durable=True), boot)
        yield World(book, drivers if drivers is not None else Registered(d=Plugin()), metrics)
    finally:
        await database.close()
