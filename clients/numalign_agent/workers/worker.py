"""The worker of one pod: runs one operation at a time, until the pod is finished (WRK-1).

What it knows is a value of `work`; this only runs operations and remembers when to look again.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable

from numalign.telemetry.logs import get_logger, log_fields
from numalign_agent.workers import work as w
from numalign_agent.workers.port import OperationFailed, PodOperations
from numalign_agent.workers.requeue import Ending, Outcome
from numalign_agent.workers.work import PodWork, Reaction, Update, WorkState

_log = get_logger("worker")

Clock = Callable[[], float]


class Worker:
    """Drives one pod. `moved` hears of every new state, `ended` how each operation ended."""

    def __init__(
        self,
        first: PodWork,
        operations: PodOperations,
        *,
        clock: Clock,
        may_start: Callable[[PodWork], bool],
        moved: Callable[[PodWork], None],
        ended: Callable[[PodWork, Outcome, float], None],
    ) -> None:
        self.work = first
        self._operations = operations
        self._clock = clock
        self._may_start = may_start
        self._moved = moved
        self._ended = ended
        self._wanted = asyncio.Event()
        self._wanted.set()
        self._operation: asyncio.Task[bool] | None = None
        self.task = asyncio.get_running_loop().create_task(self._run())

    def update(self, update: Update) -> None:
        """Take in an update: look at the pod soon, interrupt what runs, or ignore it."""
        self.work, reaction = w.accept(self.work, update, self._clock())
        self._react(reaction)

    def orphan(self) -> None:
        """No source wants the pod any more."""
        self.work = w.orphaned(self.work, self._clock())
        self._react(Reaction.INTERRUPT)

    def look(self) -> None:
        """Look at the pod again."""
        self._react(Reaction.LOOK)

    async def close(self) -> None:
        """Stop driving the pod; its containers go on."""
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task

    def _react(self, reaction: Reaction) -> None:
        if reaction is Reaction.IGNORE:
            return
        self._wanted.set()
        if reaction is Reaction.INTERRUPT and self._operation is not None:
            self._operation.cancel()

    async def _run(self) -> None:
        with log_fields(
            pod=f"{self.work.pod.namespace}/{self.work.pod.name}", pod_uid=self.work.uid
        ):
            while self.work.state is not WorkState.FINISHED:
                await self._wanted.wait()
                self._wanted.clear()
                if self.work.state is WorkState.SYNC and not self._may_start(self.work):
                    continue
                await self._operate()

    async def _operate(self) -> None:
        self.work = w.began(self.work)
        begun = self.work
        started = time.monotonic()
        self._operation = asyncio.ensure_future(self._call(begun))
        try:
            outcome = await self._outcome(begun, self._operation)
        finally:
            self._operation = None
        if outcome.ending is Ending.MOVED_ON:
            self._wanted.set()
        self._ended(begun, outcome, time.monotonic() - started)

    async def _outcome(self, begun: PodWork, operation: asyncio.Task[bool]) -> Outcome:
        try:
            await asyncio.wait((operation,))
        except asyncio.CancelledError:
            # The worker itself is to stop.
            operation.cancel()
            await asyncio.wait((operation,))
            raise
        if operation.cancelled():
            # Interrupted: a newer update is waiting and is looked at now.
            return Outcome(Ending.FAILED, "interrupted")
        error = operation.exception()
        if error is None:
            return self._done(begun, over=operation.result())
        if isinstance(error, OperationFailed):
            _log.info("operation failed", operation=begun.state.value, error=str(error))
            return Outcome(Ending.FAILED, str(error), error.retry_after)
        # A fault of ours: the pod is looked at again, and a human has to know.
        _log.error("operation broke", operation=begun.state.value, exc_info=error)
        return Outcome(Ending.FAILED, f"{type(error).__name__}: {error}")

    def _done(self, begun: PodWork, *, over: bool) -> Outcome:
        match begun.state:
            case WorkState.SYNC:
                if not over or self.work.end_requested:
                    return Outcome(Ending.MOVED_ON if self.work.end_requested else Ending.DONE)
                self.work = w.turned_terminal(self.work, self._clock())
            case WorkState.TERMINATING:
                self.work = w.stopped(self.work)
            case _:
                self.work = w.finished(self.work)
        self._moved(self.work)
        return Outcome(Ending.MOVED_ON)

    async def _call(self, begun: PodWork) -> bool:
        match begun.state:
            case WorkState.SYNC:
                return await self._operations.sync(begun)
            case WorkState.TERMINATING:
                await self._operations.terminate(begun)
            case _:
                await self._operations.finish(begun)
        return False


def chance() -> float:
    """The random part of a pause, from 0 to 1."""
    return random.random()  # noqa: S311 - spreads work, guards nothing
