"""Has pods judged in order, beside the sync loop (DES-11).

They are judged one after the other, each as if those before it were recorded; where several wait,
they are asked about in one stream. A pod is undecided from `add` until its decision is carried out;
nothing starts it meanwhile. While Admission is down everybody waits, and nobody is rejected for it
(DES-3, DES-12).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from numalign.telemetry.logs import get_logger, log_fields
from numalign.telemetry.metrics import Metrics
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb
from numalign_agent.admitting.calls import AdmissionCalls
from numalign_agent.admitting.effects import UNEXPECTED, Effects
from numalign_agent.admitting.order import first_admissions, holds_new
from numalign_agent.admitting.persisting import released, until_answered
from numalign_agent.admitting.preempting import Preemption
from numalign_agent.admitting.trouble import Trouble, trouble_of
from numalign_agent.admitting.waiting import NOBODY, Waiting
from numalign_agent.loop.pause import Pause
from numalign_agent.metrics import ADMISSION_ERRORS, ADMISSION_SECONDS, ADMISSIONS, UNDECIDED_PODS
from numalign_agent.pod import AgentPod
from numalign_agent.pods.manager import PodManager
from numalign_client.errors import AdmissionError

MOST_TOGETHER = 32
"""How many pods are asked about in one stream: a resize waits for that long, and a new pod that
goes before others."""

RETRY_SECONDS = 10.0
LONGEST_RETRY_SECONDS = 300.0

_WORDS = {
    pb.VERDICT_ADMITTED: "admitted",
    pb.VERDICT_REJECTED: "rejected",
    pb.VERDICT_DEFERRED: "deferred",
}

_log = get_logger("admission")


@dataclass(frozen=True, slots=True)
class Skipping:
    """Whether a pod is not asked about at all (ADM-9), and what is done with it then."""

    applies: Callable[[AgentPod], bool]
    then: Callable[[AgentPod], None]


class Admitter:
    """The pods without a decision, and the one task that gets them theirs.

    `ranks` are the first admissions as the journal has them; `sources_ready` says whether
    every source of pods has delivered.
    """

    def __init__(
        self,
        calls: AdmissionCalls,
        pods: PodManager,
        effects: Effects,
        preemption: Preemption,
        skipping: Skipping,
        *,
        ranks: Mapping[str, int],
        sources_ready: Callable[[], bool],
        metrics: Metrics,
    ) -> None:
        self._calls = calls
        self._pods = pods
        self._effects = effects
        self._preemption = preemption
        self._skipping = skipping
        self._ranks = dict(ranks)
        self._sources_ready = sources_ready
        self._metrics = metrics
        self._waiting = NOBODY
        self._wanted = asyncio.Event()
        self._admitted: set[str] = set()
        self._lost: frozenset[str] = frozenset()
        self._presented: set[str] = set()
        self._began_at = 0.0
        self._turn = asyncio.Lock()

    def add(self, uids: Iterable[str]) -> None:
        """These pods need a decision, in this order."""
        uids = tuple(uids)
        self._presented.update(uids)
        self._waiting = self._waiting.added(uids, self._now())
        self._changed()

    def forget(self, uid: str) -> None:
        """A pod is gone: a decision that is under way is discarded, what it gave released."""
        self._waiting = self._waiting.without(uid)
        self._ranks.pop(uid, None)
        self._changed()

    def wake(self, uid: str) -> None:
        """A pod that waits is another one now: do not wait any longer than its turn takes."""
        self._waiting = self._waiting.woken(uid)
        self._changed()

    def is_undecided(self, uid: str) -> bool:
        """Whether a pod waits for its decision."""
        return uid in self._waiting.waiting

    @property
    def undecided(self) -> frozenset[str]:
        """All pods that wait."""
        return frozenset(self._waiting.waiting)

    @property
    def admitted(self) -> frozenset[str]:
        """Pods that this agent knows to hold what they were given."""
        return frozenset(self._admitted)

    def released(self, uid: str) -> None:
        """A pod does not hold anything any more."""
        self._admitted.discard(uid)
        self._waiting = self._waiting.room_made()
        self._changed()

    def turn(self) -> asyncio.Lock:
        """Held while a pod is judged: an addition and a resize never overlap (ADM-5)."""
        return self._turn

    async def run(self) -> None:
        """Get decisions until cancelled."""
        await self._begin()
        while True:
            now = self._now()
            due = self._waiting.due(
                self._ranks, now, hold_new=self._holds_new(now), most=MOST_TOGETHER
            )
            if not due:
                await self._wait(now)
                continue
            async with self._turn:
                if not await self._decide_together(due):
                    with log_fields(pod_uid=due[0].uid):
                        await self._decide(due[0])
            self._changed()

    async def _begin(self) -> None:
        """Learn who was admitted before, as soon as Admission is there."""
        answer = await until_answered(self._calls.admissions, self._metrics)
        recorded = [record.pod_uid for record in answer.admissions]
        self._lost = frozenset(self._ranks) - frozenset(recorded)
        self._ranks = first_admissions(self._ranks, recorded)
        self._admitted |= set(recorded)
        self._began_at = self._now()
        if self._lost:
            _log.warning(
                "pods that were admitted are not in Admission's record", pods=len(self._lost)
            )

    def _holds_new(self, now: float) -> bool:
        return holds_new(
            self._lost,
            self._presented,
            sources_ready=self._sources_ready(),
            waited=now - self._began_at,
        )

    async def _wait(self, now: float) -> None:
        due = self._waiting.next_due(now)
        # Being held is over after a time that no event tells of.
        seconds = 1.0 if self._holds_new(now) else None
        if due is not None:
            seconds = due - now if seconds is None else min(seconds, due - now)
        try:
            async with asyncio.timeout(seconds):
                await self._wanted.wait()
        except TimeoutError:
            return
        self._wanted.clear()

    async def _decide_together(self, entries: Iterable[Waiting]) -> int:
        """Carry the first of these to their decisions in one stream; how many.

        None where no two of them can be asked about so: those who are not asked about at all, and
        those with victims that are to be named, are seen to by themselves.
        """
        asked: list[tuple[Waiting, AgentPod]] = []
        for entry in entries:
            pod = self._pods.pod(entry.uid)
            if pod is None or entry.preempted or self._skipping.applies(pod):
                break
            asked.append((entry, pod))
        if len(asked) < 2:
            return 0
        leaving = self._leaving()
        answers = await self._calls.admit_together([pod for _, pod in asked])
        for (entry, pod), answer in zip(asked, answers, strict=False):
            with log_fields(pod_uid=entry.uid):
                await self._carry_out(entry, pod, answer, leaving)
        return len(answers)

    async def _decide(self, entry: Waiting) -> None:
        """Carry one pod to its decision, or put it off."""
        pod = self._pods.pod(entry.uid)
        if pod is None:
            self._waiting = self._waiting.without(entry.uid)
            return
        if self._skipping.applies(pod):
            self._waiting = self._waiting.without(entry.uid)
            self._skipping.then(pod)
            return
        pause = Pause()
        while True:
            leaving = self._leaving()
            try:
                answer = await self._calls.admit(pod, preempted=entry.preempted)
            except AdmissionError as error:
                if not await self._after_trouble(entry, pod, error, pause):
                    return
                pause = pause.longer()
                pod = self._pods.pod(entry.uid) or pod
                continue
            if not answer.victims:
                break
            entry = await self._make_room(entry, answer)
            if not self._still_waits(entry):
                return
        await self._carry_out(entry, pod, answer, leaving)

    async def _make_room(self, entry: Waiting, answer: ad.AdmitResponse) -> Waiting:
        """End the victims; the entry that has them, which is to be asked about again."""
        self._metrics.counter(ADMISSIONS).labels(_WORDS[answer.verdict]).inc()
        await self._preemption.end(answer.victims)
        ended = tuple(victim.pod_uid for victim in answer.victims)
        changed = replace(entry, preempted=(*entry.preempted, *ended))
        if self._still_waits(entry):
            self._waiting = self._waiting.changed(changed)
        return changed

    async def _carry_out(
        self,
        entry: Waiting,
        asked: AgentPod,
        answer: ad.AdmitResponse,
        leaving: AbstractSet[str] = frozenset(),
    ) -> None:
        """Have a decision take effect; `leaving` were so when it was asked for."""
        word = _WORDS[answer.verdict]
        self._metrics.counter(ADMISSIONS).labels(word).inc()
        if answer.verdict == pb.VERDICT_DEFERRED:
            self._put_off(entry, asked, answer)
            return
        if answer.verdict == pb.VERDICT_REJECTED and self._wait_for_room(entry, leaving):
            return
        if self._still_waits(entry):
            await self._effects.note(asked, word, answer)
        # From here on nothing waits, so that what is true now stays true to the end.
        pod = self._pods.pod(entry.uid)
        if pod is None or not self._still_waits(entry):
            if answer.verdict == pb.VERDICT_ADMITTED:
                await self._give_back(entry.uid)
            return
        self._waiting = self._waiting.without(entry.uid)
        self._metrics.histogram(ADMISSION_SECONDS).observe(self._now() - entry.since)
        if answer.verdict == pb.VERDICT_ADMITTED:
            self._admitted.add(entry.uid)
            self._ranks.setdefault(entry.uid, max(self._ranks.values(), default=0) + 1)
            self._effects.admitted(pod, asked, answer)
        else:
            self._effects.rejected(pod, answer.reason, answer.message)

    def _put_off(self, entry: Waiting, pod: AgentPod, answer: ad.AdmitResponse) -> None:
        if not self._still_waits(entry):
            return
        seconds = answer.retry_after.ToTimedelta().total_seconds() or RETRY_SECONDS
        self._waiting = self._waiting.changed(replace(entry, not_before=self._now() + seconds))
        self._effects.deferred(pod, answer)

    def _leaving(self) -> AbstractSet[str]:
        """Pods that still hold something and that no source wants: to a kubelet they are gone."""
        return self._admitted - self._pods.pods.keys()

    def _wait_for_room(self, entry: Waiting, left: AbstractSet[str]) -> bool:
        """Whether a rejection is not the last word: pods are leaving that still hold something.

        So it is where they were `left` when the pod was judged and have gone since.
        """
        leaving = self._leaving()
        if not (leaving or left) or not self._still_waits(entry):
            return False
        _log.info("no room before other pods have left", leaving=len(leaving))
        seconds = RETRY_SECONDS if leaving else 0.0
        self._waiting = self._waiting.changed(
            replace(entry, not_before=self._now() + seconds, for_room=True)
        )
        return True

    async def _after_trouble(
        self, entry: Waiting, pod: AgentPod, error: AdmissionError, pause: Pause
    ) -> bool:
        """No decision was made; whether the same pod is to be asked about again at once."""
        code = error.code.name
        self._metrics.counter(ADMISSION_ERRORS).labels(code).inc()
        if not self._still_waits(entry):
            return False
        match trouble_of(code, [violation.field for violation in error.violations]):
            case Trouble.REFUSED:
                answer = ad.AdmitResponse(reason=UNEXPECTED, message=error.message)
                answer.verdict = pb.VERDICT_REJECTED
                await self._carry_out(entry, pod, answer)
                return False
            case Trouble.POD:
                seconds = min(RETRY_SECONDS * 2**entry.failures, LONGEST_RETRY_SECONDS)
                _log.error("no decision on this pod", code=code, error=error.message, again=seconds)
                self._waiting = self._waiting.changed(
                    replace(entry, not_before=self._now() + seconds, failures=entry.failures + 1)
                )
                return False
            case _:
                _log.warning("waiting for Admission", code=code, error=error.message)
                await asyncio.sleep(pause.seconds)
                return self._still_waits(entry)

    async def _give_back(self, uid: str) -> None:
        """Release what nobody wants any more."""
        await released(lambda: self._calls.release(uid), uid, self._metrics)
        self.released(uid)

    def _still_waits(self, entry: Waiting) -> bool:
        """Whether the pod was not taken away meanwhile, even if another came in its place."""
        waiting = self._waiting.waiting.get(entry.uid)
        return waiting is not None and waiting.number == entry.number

    def _changed(self) -> None:
        self._metrics.gauge(UNDECIDED_PODS).set(len(self._waiting.waiting))
        self._wanted.set()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
