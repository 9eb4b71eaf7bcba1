"""Every call to Admission that the agent makes, for its own owner and with its Node object.

Thin around numalign_client: adds the owner, deadlines, spans, and the revision seen so far.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_json import pod_from_json
from numalign.model.revision import latest
from numalign.rpc.channel import open_channel
from numalign.telemetry.logs import get_logger
from numalign.telemetry.tracing import active_tracer
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import claims_pb2 as cl
from numalign.v1 import types_pb2 as pb
from numalign_agent.admitting.port import NodeObjects
from numalign_agent.pod import AgentPod
from numalign_agent.spans import annotate_decision, pod_span
from numalign_client.asynchronous import AsyncAdmissionClient
from numalign_client.errors import (
    AdmissionError,
    NotAdmitted,
    PreconditionFailed,
    UnsupportedRequest,
)

ADMIT_SECONDS = 60.0
CALL_SECONDS = 20.0
CLAIMS_SECONDS = 55.0
"""A DRA driver may take 45 s."""

FRESH_NODE_NEEDED = "FreshNodeNeeded"

_VERDICTS: Mapping[pb.Verdict.ValueType, str] = {
    pb.VERDICT_ADMITTED: "admitted",
    pb.VERDICT_REJECTED: "rejected",
    pb.VERDICT_DEFERRED: "deferred",
}

ReadClaims = Callable[[core_pb2.Pod], Awaitable[Sequence[cl.FetchedClaim]]]
"""Reads the resource claims of a pod."""


_log = get_logger("admission")


@dataclass(frozen=True, slots=True)
class RunningContainer:
    """A container that runs, as Reconcile names it."""

    container_id: str
    pod_uid: str
    name: str


class AdmissionCalls:
    """Calls for one owner. Every one may raise numalign_client.AdmissionError.

    `revision` is the latest that any answer had: what the agent knows goes so far.
    """

    def __init__(self, socket: Path, owner: str) -> None:
        self.client = AsyncAdmissionClient(channel=open_channel(socket, active_tracer()))
        self.revision = 0
        self._owner = owner
        self._node: NodeObjects | None = None
        self._claims: ReadClaims | None = None
        self._has_streams: bool | None = None

    def judge_by(self, node: NodeObjects) -> None:
        """Have pods judged by this Node object from now on."""
        self._node = node

    def place_by(self, claims: ReadClaims) -> None:
        """Tell where the devices of a pod's claims sit when it is judged, from now on."""
        self._claims = claims

    async def admit(
        self, pod: AgentPod, *, preempted: Sequence[str] = (), resize: bool = False
    ) -> ad.AdmitResponse:
        """Have a pod judged; with a Node object, by it."""
        with pod_span("admit pod", pod.uid, pod.namespace, pod.name):
            answer = await self._with_node(pod, preempted, resize, fresh=None)
            if answer.verdict == pb.VERDICT_DEFERRED and answer.reason == FRESH_NODE_NEEDED:
                fresh = None if self._node is None else await self._node.read()
                answer = await self._with_node(pod, preempted, resize, fresh=fresh, last=True)
            annotate_decision(_VERDICTS.get(answer.verdict, ""), answer.reason)
        self._saw(answer.revision)
        return answer

    async def admit_together(self, pods: Sequence[AgentPod]) -> list[ad.AdmitResponse]:
        """Have pods judged in one stream; the decisions on the first of them, in order.

        Those behind are to be asked about again, the first of them by itself: it has no decision,
        or one that asks for something first. So it is where the stream breaks, too, and whoever was
        admitted all the same is told so then. Nobody is asked about here where the service has no
        streams, where pods have claims that count, and where each is to have a trace of its own.
        """
        if self._claims is not None or active_tracer() is not None or not await self._streams():
            return []
        known = self._node is not None and self._node.current() is not None
        answers: list[ad.AdmitResponse] = []
        stream = self.client.admit_pods(
            [pod_from_json(pod.document) for pod in pods],
            owner=self._owner,
            can_read_node=known,
            needs_node=known,
            only_in_order=True,
            timeout=ADMIT_SECONDS,
        )
        try:
            async with aclosing(stream):
                async for answer in stream:
                    if isinstance(answer, AdmissionError) or _asks_for_something(answer):
                        break
                    self._saw(answer.revision)
                    answers.append(answer)
        except AdmissionError as error:
            _log.info("a stream of pods broke", code=error.code.name, error=error.message)
        return answers

    async def release(self, pod_uid: str) -> None:
        """Give back what a pod holds; a pod that holds nothing is no mistake."""
        try:
            self._saw(await self.client.release(pod_uid, timeout=CALL_SECONDS))
        except NotAdmitted:
            return

    async def reconcile(
        self,
        active: Iterable[str],
        running: Iterable[RunningContainer],
        *,
        as_of: int,
        sources_ready: bool,
    ) -> ad.ReconcileResponse:
        """Say which pods there are; the others of this owner are released."""
        answer = await self.client.reconcile(
            active,
            owner=self._owner,
            running_containers=[
                pb.RunningContainer(
                    container_id=each.container_id,
                    pod_uid=each.pod_uid,
                    container_name=each.name,
                )
                for each in running
            ],
            as_of_revision=as_of,
            sources_ready=sources_ready,
            timeout=CALL_SECONDS,
        )
        self._saw(answer.revision)
        return answer

    async def admissions(self) -> ad.ListAdmissionsResponse:
        """The pods that are admitted for this owner, in order of admission."""
        answer = await self.client.list_admissions(owner=self._owner, timeout=CALL_SECONDS)
        self._saw(answer.revision)
        return answer

    async def begin_anew(self) -> None:
        """Admission counts revisions from another beginning: it has lost its record."""
        self.revision = 0
        await self.admissions()

    async def prepare_pod(
        self, pod: core_pb2.Pod, claims: Iterable[cl.FetchedClaim]
    ) -> ad.PreparePodResponse:
        """Have the resource claims of a pod prepared before its first container starts."""
        answer = await self.client.prepare_pod(pod, claims, timeout=CLAIMS_SECONDS)
        self._saw(answer.revision)
        return answer

    async def prepare(self, pod_uid: str, container: str) -> ad.PrepareContainerResponse:
        """What is to be applied to a container before it starts."""
        return await self.client.prepare_container(pod_uid, container, timeout=CALL_SECONDS)

    async def add_container(self, pod_uid: str, container: str, container_id: str) -> None:
        """A container is about to start."""
        await self.client.add_container(pod_uid, container, container_id, timeout=CALL_SECONDS)

    async def remove_container(self, container_id: str) -> None:
        """A container is gone."""
        await self.client.remove_container(container_id, timeout=CALL_SECONDS)

    async def node_changed(self) -> None:
        """The Node object is another one now, or was never told."""
        node = None if self._node is None else self._node.current()
        if node is not None:
            await self.client.set_node(node, timeout=CALL_SECONDS)

    async def close(self) -> None:
        """Close the channel."""
        await self.client.close()

    async def _streams(self) -> bool:
        """Whether the service takes streams of pods; asked once, by an empty one.

        A stream that is written to may break before it says why it was not taken.
        """
        if self._has_streams is None:
            try:
                async for _ in self.client.admit_pods([], timeout=CALL_SECONDS):
                    pass
                self._has_streams = True
            except UnsupportedRequest:
                self._has_streams = False
            except AdmissionError as error:
                _log.info("not known yet whether there are streams", code=error.code.name)
        return bool(self._has_streams)

    async def _with_node(
        self,
        pod: AgentPod,
        preempted: Sequence[str],
        resize: bool,
        *,
        fresh: core_pb2.Node | None,
        last: bool = False,
    ) -> ad.AdmitResponse:
        """Ask; where the service has forgotten the Node object, tell it and ask again."""
        known = self._node is not None and self._node.current() is not None

        message = pod_from_json(pod.document)
        claims = () if self._claims is None else await self._claims(message)

        async def ask() -> ad.AdmitResponse:
            return await self.client.admit(
                message,
                owner=self._owner,
                resize=resize,
                preempted_pod_uids=preempted,
                can_read_node=known and not last,
                fresh_node=fresh,
                needs_node=known,
                claims=claims,
                timeout=ADMIT_SECONDS,
            )

        try:
            return await ask()
        except PreconditionFailed as error:
            if not known or all(v.field != "node" for v in error.violations):
                raise
            await self.node_changed()
            return await ask()

    def _saw(self, revision: int) -> None:
        self.revision = latest(self.revision, revision)


def _asks_for_something(answer: ad.AdmitResponse) -> bool:
    """Whether the pod is to be asked about again before those behind it."""
    return bool(answer.victims) or answer.reason == FRESH_NODE_NEEDED
