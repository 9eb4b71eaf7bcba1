"""What Admission is told afterwards: containers that started or ended, pods that are gone.

Separate from the runtime's events, which cause it and must not wait for it. In order, one at a
time; while Admission cannot be reached it all waits. What is lost with the process is made up
for by Reconcile.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Any

from numalign.telemetry.logs import get_logger
from numalign.telemetry.tracing import active_tracer
from numalign_agent.nri.admission import Admission, NoAnswer, NotRecorded, Refused
from numalign_agent.nri.books import Books
from numalign_agent.nri.judge import Judge

_MOST_WAITING = 4096
_SECONDS = 5.0
_FIRST_WAIT = 0.1
_LONGEST_WAIT = 5.0

_log = get_logger("nri")


@dataclass(frozen=True, slots=True)
class _Chore:
    what: str
    about: str
    do: Callable[[], Coroutine[Any, Any, None]]
    trace: Context | None
    """That of the event that caused it, which its call belongs to; None without a tracer."""

    async def done(self) -> None:
        if self.trace is None:
            await self.do()
        else:
            await asyncio.create_task(self.do(), context=self.trace)


class Chores:
    """The list of what is still to be told."""

    def __init__(
        self,
        admission: Admission,
        judge: Judge,
        books: Books,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._admission = admission
        self._judge = judge
        self._books = books
        self._sleep = sleep
        self._chores: deque[_Chore] = deque(maxlen=_MOST_WAITING)
        self._more = asyncio.Event()
        self.idle = asyncio.Event()
        self.idle.set()

    def started(self, pod_uid: str, container: str, container_id: str) -> None:
        """A container of an admitted pod starts: what finished init containers held is freed."""

        async def do() -> None:
            await self._admission.add_container(pod_uid, container, container_id, _SECONDS)

        self._add("container started", container_id, do)

    def ended(self, container_id: str) -> None:
        """A container is gone."""

        async def do() -> None:
            await self._admission.remove_container(container_id, _SECONDS)

        self._add("container ended", container_id, do)

    def release(self, uid: str) -> None:
        """A pod is gone, unless it is back by the time that it is this chore's turn."""

        async def do() -> None:
            if uid not in self._books.active_uids():
                await self._judge.release(uid, _SECONDS)

        self._add("pod gone", uid, do)

    async def run(self) -> None:
        """Do what there is until cancelled."""
        wait = _FIRST_WAIT
        while True:
            await self._more.wait()
            while self._chores:
                chore = self._chores.popleft()
                try:
                    await chore.done()
                except NoAnswer as error:
                    _log.debug("Admission cannot be told", what=chore.what, error=str(error))
                    self._chores.appendleft(chore)
                    await self._sleep(wait)
                    wait = min(2 * wait, _LONGEST_WAIT)
                    continue
                except (NotRecorded, Refused) as error:
                    _log.debug(
                        "Admission need not be told",
                        what=chore.what,
                        about=chore.about,
                        error=str(error),
                    )
                wait = _FIRST_WAIT
            self._more.clear()
            self.idle.set()

    def _add(self, what: str, about: str, do: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if len(self._chores) == _MOST_WAITING:
            _log.warning("Admission was not told for too long; the oldest of it is left out")
        trace = None if active_tracer() is None else copy_context()
        self._chores.append(_Chore(what, about, do, trace))
        self._more.set()
        self.idle.clear()
