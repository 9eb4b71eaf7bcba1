"""All workers, by pod UID: hands updates to them and answers what others ask (WRK-12, WRK-13)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet

from numalign.telemetry.metrics import Metrics
from numalign_agent.metrics import WORKER_SECONDS, WORKER_START_SECONDS
from numalign_agent.pod import AgentPod
from numalign_agent.workers import questions
from numalign_agent.workers.forgetting import pruned
from numalign_agent.workers.grace import kill_wait
from numalign_agent.workers.port import PodOperations
from numalign_agent.workers.requeue import Outcome, next_look
from numalign_agent.workers.turns import StaticTurns
from numalign_agent.workers.work import Kill, PodWork, Update, UpdateKind, WorkState, first_work
from numalign_agent.workers.work_queue import WorkQueue
from numalign_agent.workers.worker import Clock, Worker, chance

KILL_TIMED_OUT = "timeout waiting to kill pod"
STATIC_WAIT = 10.0


class KillTimedOut(Exception):
    """A pod did not end in time; its containers are still being ended."""


class Workers:
    """Workers of all pods. Updates never wait.

    `is_idle` says whether the runtime has no running container of a pod. `ended` hears the UID
    of every pod whose containers are all stopped, and again when nothing is left to do. `tidied`
    is whether housekeeping was done at least once.
    """

    def __init__(
        self,
        operations: PodOperations,
        queue: WorkQueue,
        *,
        clock: Clock,
        sync_every: float,
        is_idle: Callable[[str], bool],
        ended: Callable[[str], None],
        metrics: Metrics,
    ) -> None:
        self._operations = operations
        self._queue = queue
        self._clock = clock
        self._sync_every = sync_every
        self._is_idle = is_idle
        self._ended = ended
        self._metrics = metrics
        self._workers: dict[str, Worker] = {}
        self._turns = StaticTurns()
        self._stopped: dict[str, asyncio.Event] = {}
        self.tidied = False

    def update(self, update: Update) -> None:
        """Tell a pod's worker; there is one afterwards, unless the pod is finished."""
        uid = update.pod.uid
        worker = self._workers.get(uid)
        if worker is not None:
            worker.update(update)
            return
        work = first_work(update, self._clock(), runtime_idle=self._is_idle(uid))
        if work.pod.is_static:
            self._turns.arrive(work.pod.full_name, uid)
        self._stopped[uid] = asyncio.Event()
        self._workers[uid] = Worker(
            work,
            self._operations,
            clock=self._clock,
            may_start=self._may_start,
            moved=self._moved,
            ended=self._operation_ended,
        )
        if work.known_terminated:
            self._stopped[uid].set()
        if update.seen_at:
            waited = self._clock() - update.seen_at
            self._metrics.histogram(WORKER_START_SECONDS).observe(waited)

    def works(self) -> Mapping[str, PodWork]:
        """What every worker knows, by UID."""
        return {uid: worker.work for uid, worker in self._workers.items()}

    def work(self, pod_uid: str) -> PodWork | None:
        """What the worker of this pod knows; None where there is none."""
        worker = self._workers.get(pod_uid)
        return None if worker is None else worker.work

    def may_run(self, pod_uid: str) -> bool:
        """See `questions.may_run`."""
        return questions.may_run(self.work(pod_uid), tidied=self.tidied)

    def is_finished(self, pod_uid: str) -> bool:
        """See `questions.is_finished`."""
        return questions.is_finished(self.work(pod_uid), tidied=self.tidied)

    def content_goes(self, pod_uid: str) -> bool:
        """See `questions.content_goes`."""
        return questions.content_goes(self.work(pod_uid), tidied=self.tidied)

    async def kill(self, pod: AgentPod, kill: Kill) -> None:
        """End a pod and wait until its containers are stopped.

        Raises KillTimedOut when that takes too long; the pod is being ended all the same.
        """
        self.update(Update(UpdateKind.KILL, pod, kill=kill))
        try:
            async with asyncio.timeout(kill_wait(pod, kill.grace)):
                await self._stopped[pod.uid].wait()
        except TimeoutError:
            raise KillTimedOut(KILL_TIMED_OUT) from None

    def prune(self, desired: AbstractSet[str], in_runtime: AbstractSet[str]) -> tuple[str, ...]:
        """Forget, end and push workers (WRK-10); the UIDs of pods that were forgotten."""
        plan = pruned(self.works(), desired, in_runtime)
        for uid in plan.forget:
            self._forget(uid)
        for uid in plan.end:
            self._workers[uid].orphan()
        for uid in plan.push:
            self._workers[uid].look()
        self.tidied = True
        return plan.forget

    def look(self, pod_uids: Iterable[str]) -> None:
        """Have these pods looked at, where they have a worker."""
        for uid in pod_uids:
            worker = self._workers.get(uid)
            if worker is not None:
                worker.look()

    async def close(self) -> None:
        """Stop all workers; containers go on."""
        await asyncio.gather(*(worker.close() for worker in self._workers.values()))

    def _forget(self, uid: str) -> None:
        worker = self._workers.pop(uid)
        worker.task.cancel()
        self._stopped.pop(uid).set()
        self._queue.drop(uid)
        self._leave(worker.work)

    def _leave(self, work: PodWork) -> None:
        following = self._turns.leave(work.pod.full_name, work.uid)
        if following is not None:
            self.look((following,))

    def _may_start(self, work: PodWork) -> bool:
        if not work.pod.is_static or self._turns.may_start(work.pod.full_name, work.uid):
            return True
        wait = STATIC_WAIT * (1 + chance() / 2)
        self._queue.put(work.uid, asyncio.get_running_loop().time() + wait)
        return False

    def _moved(self, work: PodWork) -> None:
        if work.known_terminated:
            self._stopped[work.uid].set()
            self._ended(work.uid)
        if work.state is WorkState.FINISHED:
            self._leave(work)

    def _operation_ended(self, work: PodWork, outcome: Outcome, seconds: float) -> None:
        self._metrics.histogram(WORKER_SECONDS).labels(_operation(work)).observe(seconds)
        pause = next_look(outcome, self._sync_every, chance())
        if pause > 0:
            self._queue.put(work.uid, asyncio.get_running_loop().time() + pause)


def _operation(work: PodWork) -> str:
    """The kubelet's word for an operation (WRK-18)."""
    match work.state:
        case WorkState.SYNC:
            return work.kind.value
        case WorkState.TERMINATING:
            return UpdateKind.KILL.value
        case _:
            return WorkState.TERMINATED.value
