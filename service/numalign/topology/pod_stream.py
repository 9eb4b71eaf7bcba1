"""A stream of pods: each has its decision in the order sent, and many share one recording.

Separate from the group, which decides and records: this takes the node's turn, and says which
pods make a group. A group ends, and is recorded,

- when the stream has no further pod at hand, so that nobody waits for a pod that may not come;
- when somebody else waits for the node's turn, or it is full: so others wait no longer than for
  one admission and one recording, and a caller that is answered slowly is not far behind;
- before a pod that needs what is recorded: one that is admitted already, a resize.

The next pods are read and parsed while one is decided on. What is told of a pod holds once it
is settled: if the group is lost, so is everything that was decided in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from numalign.errors import InvalidInput, NumalignError, QueueFull
from numalign.telemetry import attributes
from numalign.telemetry.logs import log_fields
from numalign.telemetry.tracing import active_tracer, span
from numalign.topology.decision import AdmitCall, Decision
from numalign.topology.group import LARGEST, Group
from numalign.topology.turnstile import Turnstile

READ_AHEAD = 8
"""How many pods are read before they are decided on; a faster caller has to wait."""

_ADMIT = "admit pod"
"""Name of the span around the decision on one pod."""

PROMISED_SECONDS = 0.02
"""How long the next pod is waited for where one was promised."""


@dataclass(frozen=True, slots=True)
class AskedPod:
    """One pod of the stream, or what is wrong with it; `more`: another one follows at once."""

    call: AdmitCall | NumalignError
    more: bool


@dataclass(frozen=True, slots=True)
class DecidedPod:
    """The decision on one pod, or why there is none, after so many seconds."""

    asked: AskedPod
    outcome: Decision | NumalignError
    seconds: float


@dataclass(frozen=True, slots=True)
class PodEvent:
    """What is told: the decision on the next pod, and whether the pods up to it are settled.

    `lost`: nothing of those that were not settled before was kept, for this reason.
    """

    decided: DecidedPod | None
    settled: bool = False
    lost: NumalignError | None = None


One = Callable[[AdmitCall, float], Awaitable[Decision]]
"""Decides on a pod by itself; it has waited for so many seconds."""

GroupFor = Callable[[AdmitCall, Group | None], Awaitable[Group | None]]
"""The group that a pod can be decided in: the given one, a new one if there is none, or None."""


class PodStream:
    """Decides on the pods of one stream; to be used once."""

    def __init__(self, turnstile: Turnstile, *, one: One, group: GroupFor) -> None:
        self._turnstile = turnstile
        self._one = one
        self._group_for = group
        self._group: Group | None = None
        self._asked: asyncio.Queue[AskedPod | None] = asyncio.Queue(READ_AHEAD)
        self._told: asyncio.Queue[PodEvent | None] = asyncio.Queue()
        self._ended = False

    async def decide(self, pods: AsyncIterator[AskedPod]) -> AsyncGenerator[PodEvent, None]:
        """Tell what becomes of each pod. Closed before its end, what is not recorded is undone."""
        reading = asyncio.ensure_future(self._read(pods))
        working = asyncio.ensure_future(self._work())
        try:
            while (event := await self._told.get()) is not None:
                await _explain(event)
                yield event
                self._told.task_done()
            await working
            await reading
        finally:
            reading.cancel()
            working.cancel()
            await asyncio.gather(reading, working, return_exceptions=True)

    async def _read(self, pods: AsyncIterator[AskedPod]) -> None:
        try:
            async for asked in pods:
                await self._asked.put(asked)
        except Exception:
            await self._asked.put(None)
            raise
        await self._asked.put(None)

    async def _work(self) -> None:
        try:
            asked = await self._next()
            while asked is not None:
                held_back = await self._take_turn(asked)
                # Whoever is slow to hear of one group does not get another one decided.
                await self._told.join()
                asked = held_back or await self._next()
        finally:
            self._told.put_nowait(None)

    async def _next(self) -> AskedPod | None:
        """The next pod; None if there is none any more."""
        if self._ended:
            return None
        asked = await self._asked.get()
        self._ended = asked is None
        return asked

    async def _promised(self) -> AskedPod | None:
        """The next pod if it comes in time."""
        if not self._asked.empty():
            return await self._next()
        try:
            async with asyncio.timeout(PROMISED_SECONDS):
                return await self._next()
        except TimeoutError:
            return None

    async def _take_turn(self, asked: AskedPod) -> AskedPod | None:
        """Decide on a pod, and on those that go with it; one that was read and does not."""
        begun = _now()
        try:
            async with self._turnstile.turn():
                return await self._decide(asked, _now() - begun)
        except QueueFull as error:
            self._tell(PodEvent(DecidedPod(asked, error, _now() - begun), settled=True))
            return None
        finally:
            await self._lose()

    async def _decide(self, asked: AskedPod, waited: float) -> AskedPod | None:
        for place in range(1, LARGEST + 1):
            begun = _now() - waited
            try:
                goes_with_it = await self._find_group(asked)
            except NumalignError as error:
                self._tell(PodEvent(DecidedPod(asked, error, _now() - begun), settled=True))
                return None
            if not goes_with_it:
                break
            outcome, lost = await self._add(asked, waited)
            decided = DecidedPod(asked, outcome, _now() - begun)
            if lost is not None:
                self._tell(PodEvent(decided, settled=True, lost=lost))
                return None
            if not asked.more or place == LARGEST or self._turnstile.waiting:
                await self._settle(decided)
                return None
            self._tell(PodEvent(decided))
            following = await self._promised()
            if following is None:
                await self._settle(None)
                return None
            asked, waited = following, 0.0
        if self._group is not None:
            await self._settle(None)
            return asked
        begun = _now() - waited
        outcome = await self._by_itself(asked, waited)
        self._tell(PodEvent(DecidedPod(asked, outcome, _now() - begun), settled=True))
        return None

    async def _find_group(self, asked: AskedPod) -> bool:
        """Whether the pod is decided in a group: the one there is, or one that begins with it."""
        if isinstance(asked.call, NumalignError):
            return self._group is not None
        group = await self._group_for(asked.call, self._group)
        if group is None:
            return False
        self._group = group
        return True

    async def _add(
        self, asked: AskedPod, waited: float
    ) -> tuple[Decision | NumalignError, NumalignError | None]:
        """The decision on the next pod of the group; why the group is lost with it, if it is."""
        call, group = asked.call, self._group
        if isinstance(call, NumalignError):
            return call, None
        if group is None:
            raise AssertionError("no group is open")
        with about(_ADMIT, call, group.admission_id):
            try:
                judged = await group.add(call)
            except InvalidInput as error:
                return error, None
            except NumalignError as error:
                self._group = None
                return error, error
        decision = Decision(
            response=judged.response,
            result=judged.result,
            admission_id=group.admission_id,
            waited=waited,
            explaining=judged.explaining,
        )
        return decision, None

    async def _by_itself(self, asked: AskedPod, waited: float) -> Decision | NumalignError:
        call = asked.call
        if isinstance(call, NumalignError):
            return call
        with about(_ADMIT, call):
            try:
                return await self._one(call, waited)
            except NumalignError as error:
                return error

    async def _settle(self, decided: DecidedPod | None) -> None:
        """Record the group, and tell that its pods are settled, this one the last of them."""
        group, self._group = self._group, None
        lost: NumalignError | None = None
        if group is not None:
            try:
                await group.keep()
            except NumalignError as error:
                lost = error
        self._tell(PodEvent(decided, settled=True, lost=lost))

    async def _lose(self) -> None:
        """Give up a group whose turn ends before it is kept."""
        group, self._group = self._group, None
        if group is not None:
            await group.lose()

    def _tell(self, event: PodEvent) -> None:
        self._told.put_nowait(event)


async def _explain(event: PodEvent) -> None:
    """Put what was asked for into the answer of an event; the next pod is decided on meanwhile."""
    if event.decided is not None and isinstance(event.decided.outcome, Decision):
        await event.decided.outcome.explain()


def _now() -> float:
    return asyncio.get_running_loop().time()


@contextmanager
def about(step: str, call: AdmitCall, admission_id: str = "") -> Iterator[None]:
    """What is logged and traced in a `with` block is about this pod, in this step."""
    pod = call.pod
    fields = {"pod": f"{pod.namespace}/{pod.name}", "pod_uid": pod.uid}
    if admission_id:
        fields["admission_id"] = admission_id
    with log_fields(**fields):
        if active_tracer() is None:
            yield
        else:
            with span(step, **attributes.pod_attributes(pod.uid, pod.namespace, pod.name)):
                yield
