"""Stands in for Admission: answers as it is told, and writes down what it is asked."""

# ruff: noqa: ARG002 - arguments are those of what it stands in for

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from grpc import StatusCode

from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb
from numalign_agent.admitting.calls import RunningContainer
from numalign_agent.pod import AgentPod
from numalign_client.errors import AdmissionError, ServiceUnavailable, Violation

ADMITTED = ad.AdmitResponse(verdict=pb.VERDICT_ADMITTED)


def rejected(reason: str = "OutOfcpu", message: str = "too few") -> ad.AdmitResponse:
    return ad.AdmitResponse(verdict=pb.VERDICT_REJECTED, reason=reason, message=message)


def deferred(seconds: int = 0, *victims: str) -> ad.AdmitResponse:
    answer = ad.AdmitResponse(verdict=pb.VERDICT_DEFERRED, reason="NotYet", message="wait")
    answer.retry_after.seconds = seconds
    for victim in victims:
        answer.victims.add(pod_uid=victim)
    return answer


def down() -> AdmissionError:
    return ServiceUnavailable(StatusCode.UNAVAILABLE, "nobody is there")


def trouble(code: StatusCode, *fields: str) -> AdmissionError:
    return AdmissionError(code, "no", tuple(Violation(field, "wrong") for field in fields))


class AdmissionDouble:
    """See AdmissionCalls. `script` are answers by pod UID; without one a pod is admitted."""

    def __init__(self) -> None:
        self.revision = 0
        self.streams = False
        self.asked: list[tuple[Any, ...]] = []
        self.script: dict[str, deque[ad.AdmitResponse | AdmissionError]] = {}
        self.held = asyncio.Event()
        self.held.set()
        self.listing = ad.ListAdmissionsResponse()
        self.failing: deque[AdmissionError] = deque()
        self.reconciliation = ad.ReconcileResponse()

    def answers(self, uid: str, *answers: ad.AdmitResponse | AdmissionError) -> None:
        self.script[uid] = deque(answers)

    def admits(self) -> list[str]:
        return [entry[1] for entry in self.asked if entry[0] == "admit"]

    async def admit(
        self, pod: AgentPod, *, preempted: Sequence[str] = (), resize: bool = False
    ) -> ad.AdmitResponse:
        self.asked.append(("resize" if resize else "admit", pod.uid, *preempted))
        await self.held.wait()
        script = self.script.get(pod.uid)
        answer = script.popleft() if script else ADMITTED
        if isinstance(answer, AdmissionError):
            raise answer
        return answer

    async def admit_together(self, pods: Sequence[AgentPod]) -> list[ad.AdmitResponse]:
        answers: list[ad.AdmitResponse] = []
        if not self.streams:
            return answers
        self.asked.append(("together", *(pod.uid for pod in pods)))
        await self.held.wait()
        for pod in pods:
            script = self.script.get(pod.uid)
            answer = script[0] if script else ADMITTED
            if isinstance(answer, AdmissionError) or answer.victims:
                break
            if script:
                script.popleft()
            answers.append(answer)
        return answers

    async def release(self, pod_uid: str) -> None:
        self._fail()
        self.asked.append(("release", pod_uid))

    async def admissions(self) -> ad.ListAdmissionsResponse:
        self._fail()
        return self.listing

    async def reconcile(
        self,
        active: Iterable[str],
        running: Iterable[RunningContainer],
        *,
        as_of: int,
        sources_ready: bool,
    ) -> ad.ReconcileResponse:
        self._fail()
        self.asked.append(("reconcile", tuple(sorted(active)), as_of, sources_ready))
        return self.reconciliation

    def _fail(self) -> None:
        if self.failing:
            raise self.failing.popleft()
