"""Telling Admission regularly which pods there are, so that it holds nothing for others (DES-6)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from numalign.telemetry.logs import get_logger
from numalign_agent.admitting.admitter import Admitter
from numalign_agent.admitting.calls import AdmissionCalls, RunningContainer
from numalign_client.errors import AdmissionError

_log = get_logger("reconciliation")


@dataclass(frozen=True, slots=True)
class NodePicture:
    """The pods of this agent that hold resources or may yet, and their running containers."""

    active: frozenset[str]
    running: tuple[RunningContainer, ...]


class Reconciler:
    """Reconciles every `every` seconds and whenever it is woken."""

    def __init__(
        self,
        calls: AdmissionCalls,
        admitter: Admitter,
        picture: Callable[[], NodePicture],
        sources_ready: Callable[[], bool],
        every: float,
    ) -> None:
        self._calls = calls
        self._admitter = admitter
        self._picture = picture
        self._sources_ready = sources_ready
        self._every = every
        self._wanted = asyncio.Event()

    def wake(self) -> None:
        """Something ended: do not wait for the next time."""
        self._wanted.set()

    async def run(self) -> None:
        """Reconcile until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._every):
                    await self._wanted.wait()
            self._wanted.clear()
            try:
                await self._reconcile_or_begin_anew()
            except AdmissionError as error:
                _log.warning("not reconciled", code=error.code.name, error=error.message)

    async def _reconcile_or_begin_anew(self) -> None:
        try:
            await self.reconcile()
        except AdmissionError as error:
            if all(violation.field != "as_of_revision" for violation in error.violations):
                raise
            _log.warning("Admission does not know how far this agent has seen", error=error.message)
            await self._calls.begin_anew()
            await self.reconcile()

    async def reconcile(self) -> None:
        """Once. Raises AdmissionError."""
        # What Admission admits after this is not known here, and must not be touched.
        as_of = self._calls.revision
        picture = self._picture()
        answer = await self._calls.reconcile(
            picture.active, picture.running, as_of=as_of, sources_ready=self._sources_ready()
        )
        for problem in answer.problems:
            _log.warning("not given back yet", problem=problem)
        for uid in answer.released_pod_uids:
            self._admitter.released(uid)
        self._ask_again(answer.unknown_pod_uids)

    def _ask_again(self, unknown: Iterable[str]) -> None:
        """Pods that run on what Admission has lost since are judged anew, in their order."""
        lost = [
            uid
            for uid in unknown
            if uid in self._admitter.admitted and not self._admitter.is_undecided(uid)
        ]
        if lost:
            _log.warning("Admission has lost pods; they are asked about again", pods=len(lost))
            self._admitter.add(lost)
