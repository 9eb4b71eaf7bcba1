"""Ending pods so that a critical one has room (PRE-8, PRE-9)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign.v1 import types_pb2 as pb
from numalign_agent.admitting.calls import AdmissionCalls
from numalign_agent.admitting.persisting import released
from numalign_agent.metrics import PREEMPTIONS
from numalign_agent.pods.manager import PodManager
from numalign_agent.status.cache import StatusCache
from numalign_agent.status.port import EventType
from numalign_agent.workers.work import EndedBy, Kill
from numalign_agent.workers.workers import KillTimedOut, Workers

REASON = "Preempting"
MESSAGE = "Preempted in order to admit critical pod"
CONDITION = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "TerminationByKubelet",
    "message": "Pod was preempted by Kubelet to accommodate a critical pod.",
}

_log = get_logger("admission")


class Preemption:
    """Ends victims one after the other, and gives back what they held."""

    def __init__(
        self,
        pods: PodManager,
        workers: Workers,
        cache: StatusCache,
        calls: AdmissionCalls,
        metrics: Metrics,
    ) -> None:
        self._pods = pods
        self._workers = workers
        self._cache = cache
        self._calls = calls
        self._metrics = metrics

    async def end(self, victims: Iterable[pb.Victim]) -> None:
        """End them in order. One that cannot be ended is passed over (PRE-9)."""
        for victim in victims:
            pod = self._pods.pod(victim.pod_uid)
            if pod is None:
                _log.warning("a victim is not a pod of this agent", victim=victim.pod_uid)
                continue
            self._cache.event(pod, EventType.WARNING, REASON, MESSAGE)
            ended = EndedBy(REASON, MESSAGE, condition=CONDITION)
            try:
                await self._workers.kill(pod, Kill(evict=True, ended_by=ended))
            except KillTimedOut as error:
                _log.error("a victim could not be ended", victim=pod.full_name, error=str(error))
                text = "Container runtime did not kill the pod within specified grace period."
                self._cache.event(pod, EventType.WARNING, "ExceededGracePeriod", text)
                continue
            await released(partial(self._calls.release, pod.uid), pod.uid, self._metrics)
            self._metrics.counter(PREEMPTIONS).inc()
