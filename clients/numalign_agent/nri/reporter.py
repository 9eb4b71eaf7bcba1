"""Telling people what happened to a pod: in the log, as a number, and as an event in the API.

Separate from what it is told by, which must not wait for an API server.
"""

from __future__ import annotations

import asyncio
from collections import deque

from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign_agent.api.errors import ApiError
from numalign_agent.api.failures import explained
from numalign_agent.nri.api_calls import PodApi
from numalign_agent.nri.metrics import DECISIONS, TOO_LATE, UNPINNED
from numalign_agent.pod import AgentPod

_MOST_WAITING = 256

_log = get_logger("nri")


class Reporter:
    """Logs and counts at once; shows events in the API, where there is one, in `run`."""

    def __init__(self, metrics: Metrics, api: PodApi | None) -> None:
        self._decisions = metrics.counter(DECISIONS)
        self._unpinned = metrics.counter(UNPINNED)
        self._too_late = metrics.counter(TOO_LATE)
        self._api = api
        self._waiting: deque[tuple[AgentPod, str, str]] = deque(maxlen=_MOST_WAITING)
        self._news = asyncio.Event()

    def decided(self, pod: AgentPod, outcome: str, detail: str = "") -> None:
        """What became of a pod that Admission was asked about."""
        self._decisions.labels(outcome).inc()
        log = _log.info if outcome in {"admitted", "estimated"} else _log.warning
        log(f"pod {outcome}", pod=_called(pod), pod_uid=pod.uid, detail=detail)

    def undecided(self, pod: AgentPod, detail: str, *, too_late: bool) -> None:
        """Admission said nothing while the runtime waited."""
        if too_late:
            self._too_late.inc()
        self.decided(pod, "undecided", detail)

    def runs_shared(self, pod: AgentPod, reason: str, message: str) -> None:
        """A pod was refused and runs all the same."""
        self.decided(pod, "shared", f"{reason}: {message}")
        self._warn(pod, reason, f"{message}; the pod runs on the shared CPUs")

    def unpinned(self, pod: AgentPod, container: str, message: str) -> None:
        """A container was found where it should not be."""
        self._unpinned.inc()
        _log.warning(
            "container ran unpinned",
            pod=_called(pod),
            pod_uid=pod.uid,
            container=container,
            detail=message,
        )
        self._warn(pod, "ContainerUnpinned", f"Container {container}: {message}")

    def refused_update(self, pod: AgentPod, container: str, message: str) -> None:
        """A container could not be put where it should be."""
        _log.error(
            "container cannot be placed",
            pod=_called(pod),
            pod_uid=pod.uid,
            container=container,
            detail=message,
        )
        self._warn(pod, "PlacementFailed", f"Container {container}: {message}")

    async def run(self) -> None:
        """Show events until cancelled. One that the API does not take is dropped, with a line."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._waiting and self._api is not None:
                pod, reason, message = self._waiting.popleft()
                try:
                    await self._api.warn(pod, reason, message)
                except ApiError as error:
                    _log.warning(
                        "an event could not be shown",
                        pod=_called(pod),
                        reason=reason,
                        error=explained(error),
                    )

    def _warn(self, pod: AgentPod, reason: str, message: str) -> None:
        if self._api is not None:
            self._waiting.append((pod, reason, message))
            self._news.set()


def _called(pod: AgentPod) -> str:
    return f"{pod.namespace}/{pod.name}"
