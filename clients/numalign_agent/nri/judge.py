"""Having a pod decided on: its spec is found, Admission is asked, and the answer is kept.

The same for a pod that is about to start and for one that runs already; what differs is only
what a refusal leads to.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from numalign_agent.nri.admission import Admission, Decision, NoAnswer, NotRecorded, Verdict
from numalign_agent.nri.books import Books
from numalign_agent.nri.evictions import Evictions
from numalign_agent.nri.known import KnownContainer, KnownPod, Refusal
from numalign_agent.nri.plan.estimate import estimated_pod, estimated_uid
from numalign_agent.nri.plan.patience import Patience
from numalign_agent.nri.plan.refusals import Consequence, consequence, exemption
from numalign_agent.nri.plan.standing import Standing
from numalign_agent.nri.pod_specs.port import FirstOf, Wanted
from numalign_agent.nri.reporter import Reporter
from numalign_agent.nri.settings import NriSettings
from numalign_agent.spans import annotate_decision


class Judge:
    """Decides on pods by asking; changes the books."""

    def __init__(
        self,
        books: Books,
        admission: Admission,
        specs: FirstOf,
        reporter: Reporter,
        evictions: Evictions,
        settings: NriSettings,
    ) -> None:
        self._books = books
        self._admission = admission
        self._specs = specs
        self._reporter = reporter
        self._evictions = evictions
        self._settings = settings

    async def judge(self, pod: KnownPod, patience: Patience, *, running: bool) -> None:
        """Decide on a pod unless that is done. Raises NoAnswer, which leaves it waiting.

        Afterwards `standing` and `refusal` say what was decided. A pod of which no spec can be
        had is ESTIMATED: its containers are judged by themselves.
        """
        if self._books.standing(pod) not in {Standing.WAITING, Standing.REFUSED}:
            return
        pod.document = await self._document(pod, patience.spec)
        if pod.document is None:
            pod.standing, pod.refusal = Standing.ESTIMATED, None
            return
        document = {**pod.document, "metadata": pod.as_agent_pod.metadata}
        decision = await self._decision(document, patience.admission)
        if decision.record is not None:
            self._books.recorded(pod.uid, decision.record)
            pod.standing, pod.refusal = Standing.WAITING, None
            self._reporter.decided(pod.as_agent_pod, "admitted")
        elif not self._books.is_recorded(pod.uid):
            self._refused(pod, decision, running=running)

    async def look_up(self, pod: KnownPod, seconds: float) -> None:
        """Find a pod's spec, if that has not been done."""
        pod.document = await self._document(pod, seconds)

    async def judge_container(
        self, pod: KnownPod, container: KnownContainer, patience: Patience
    ) -> None:
        """Decide on one container of an ESTIMATED pod, from what its cgroup is set to.

        A container of a pod that is not Guaranteed needs no decision, and one that is refused
        runs in the shared pool: whether its pod is critical is not known. Raises NoAnswer.
        """
        uid = estimated_uid(pod.uid, container.name)
        if self._books.is_recorded(uid) or container.seen.id in pod.judged:
            return
        document = estimated_pod(
            pod.uid, pod.name, pod.namespace, container.name, container.seen.settings
        )
        if document is None:
            pod.judged.add(container.seen.id)
            return
        decision = await self._decision(document, patience.admission)
        pod.judged.add(container.seen.id)
        if decision.record is not None:
            self._books.recorded(uid, decision.record)
            self._reporter.decided(pod.as_agent_pod, "estimated", f"container {container.name}")
        elif decision.refusal is not None:
            refusal = decision.refusal
            self._reporter.runs_shared(pod.as_agent_pod, refusal.reason, refusal.message)

    async def _document(self, pod: KnownPod, seconds: float) -> Mapping[str, Any] | None:
        if pod.document is not None:
            return pod.document
        annotations = pod.as_agent_pod.annotations
        wanted = Wanted(
            uid=pod.uid, name=pod.name, namespace=pod.namespace, annotations=annotations
        )
        return await self._specs.find(wanted, seconds)

    async def _decision(self, document: Mapping[str, Any], seconds: float) -> Decision:
        """What Admission says.

        Pods that have ended but are not gone yet still hold what they had. What they hold is
        given back at once where it stands in the way of another.
        """
        async with _in_time(seconds):
            decision = await self._admission.admit(document, seconds)
            if decision.verdict is Verdict.REJECTED and self._books.resting():
                await self.release_resting(seconds)
                decision = await self._admission.admit(document, seconds)
        refusal = decision.refusal
        annotate_decision(decision.verdict.value, "" if refusal is None else refusal.reason)
        return decision

    async def release_resting(self, seconds: float) -> None:
        """Give back what pods hold that have ended. Raises NoAnswer."""
        for pod in self._books.resting():
            for uid in self._books.uids_held(pod):
                await self.release(uid, seconds)

    async def release(self, uid: str, seconds: float) -> None:
        """Give back what is held under a uid. Raises NoAnswer."""
        try:
            revision = await self._admission.release(uid, seconds)
        except NotRecorded:
            self._books.not_recorded(uid)
        else:
            self._books.released(uid, revision)

    def _refused(self, pod: KnownPod, decision: Decision, *, running: bool) -> None:
        refusal = pod.refusal = decision.refusal or Refusal(decision.verdict.value, "")
        why = exemption(pod.as_agent_pod, self._settings.exempt_namespaces)
        outcome = consequence(
            self._settings.on_reject,
            exempt=bool(why),
            running=running or decision.verdict is Verdict.UNJUDGED,
            deferred=decision.verdict is Verdict.DEFERRED,
            estimated=False,
        )
        if outcome is Consequence.SHARED:
            pod.standing = Standing.SHARED
            because = f" ({why})" if why else ""
            self._reporter.runs_shared(
                pod.as_agent_pod, refusal.reason, f"{refusal.message}{because}"
            )
            return
        pod.standing = Standing.REFUSED
        if outcome is Consequence.EVICT:
            self._evictions.ask(pod.as_agent_pod, str(refusal))
            self._reporter.decided(pod.as_agent_pod, "evicted", str(refusal))
        else:
            self._reporter.decided(pod.as_agent_pod, "vetoed", str(refusal))


@asynccontextmanager
async def _in_time(seconds: float) -> AsyncGenerator[None]:
    """Bounds several calls together; each has the same limit for itself."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise NoAnswer(f"no answer within {seconds:g} s", in_time=False) from None
