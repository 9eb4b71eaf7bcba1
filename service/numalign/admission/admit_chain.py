"""The chain of admit handlers around one Topology Manager, for one pod at a time.

Separate from the servicer, which works without a chain where no Node object is known: this
translates between messages and what the chain is asked, and keeps admissions one behind the
other (ADM-5).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from numalign.admission.chain.built_in import Chain
from numalign.admission.chain.placement import only_remote, resizing_without_node
from numalign.admission.chain.question import NodeFacts, Operation, Question, Sent
from numalign.admission.chain.shown import question
from numalign.admission.chain.walk import Allocated, End, Outcome, Walk, allocate_last
from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.allocation import ResizeGates, allocation_of
from numalign.admission.handlers.node_usage import PodUsage, pod_usage, summed
from numalign.admission.handlers.predicates import NO_DEVICES, DeviceCounts
from numalign.admission.handlers.preemption import VICTIM_REASON
from numalign.admission.node_state import NodeState, Pressure
from numalign.admission.one_at_a_time import OneAtATime
from numalign.admission.pod_messages import (
    admit_pod,
    node_view,
    resize_status,
    with_resources,
)
from numalign.admission.pod_resources.mirror import AdmissionMirror
from numalign.admission.resize_answers import answer_resize
from numalign.admission.sitting import AskTopology, Sitting, Unrecorded
from numalign.errors import InvalidInput, NotFound
from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_decode import parse_pod, read_pod
from numalign.kube.violations import invalid
from numalign.model.feature_gates import FeatureGates
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

VICTIMS_FIRST = "pods of less importance must end before this pod can be admitted"
"""The message of an answer that names victims."""

SOFT_RETRY_SECONDS = 10
"""When a pod that a soft handler refused is asked about again (ARM-7)."""

_ENDS = {
    pb.VERDICT_ADMITTED: End.ADMITTED,
    pb.VERDICT_REJECTED: End.REJECTED,
    pb.VERDICT_DEFERRED: End.DEFERRED,
}
_VERDICTS = {end: verdict for verdict, end in _ENDS.items()}


@dataclass(frozen=True, slots=True)
class ChainStrategies:
    """How a chain is walked, and whether an admitted pod is judged again when it is asked about."""

    walk: Walk[ad.AdmitResponse]
    judge_again: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPlan:
    """Who decides, as one configuration says: on additions, and on resizes."""

    additions: Chain
    resizes: Chain
    resize: ResizeGates
    gates: FeatureGates


@dataclass(frozen=True, slots=True)
class _Known:
    """An admitted pod as it was read from `spec`, and what it takes."""

    spec: bytes
    pod: AdmitPod
    usage: PodUsage


@dataclass(frozen=True, slots=True)
class _Topology:
    """The Topology Manager about one pod, with the records of the other ones.

    `tried` is what a dry run has said already.
    """

    ask: AskTopology
    only_wants_to_know: bool
    others: tuple[pb.AdmissionRecord, ...]
    tried: ad.AdmitResponse | None = None

    async def allocate(self, *, dry_run: bool) -> Allocated[ad.AdmitResponse]:
        """See TopologyPort."""
        dry_run = dry_run or self.only_wants_to_know
        response = self.tried if dry_run else None
        if response is None:
            response = await self.ask(dry_run)
        return Allocated(
            end=_ENDS[response.verdict], response=response, devices=self._devices(response)
        )

    def _devices(self, response: ad.AdmitResponse) -> DeviceCounts:
        """What is handed out with this pod; it does not matter where the pod has no device."""
        allocated: dict[str, int] = {}
        _count(response.allocations, allocated)
        if not allocated:
            return NO_DEVICES
        for record in self.others:
            _count(record.allocations, allocated)
        return DeviceCounts(allocated=allocated, pod_holds_some=True)


class AdmitChain:
    """Decides on pods while a Node object is known, and where others have handlers in it."""

    def __init__(
        self,
        plan: ChainPlan,
        strategies: ChainStrategies,
        node: NodeState,
        mirror: AdmissionMirror,
    ) -> None:
        self.node = node
        self._strategies = strategies
        self._mirror = mirror
        self._one_at_a_time = OneAtATime()
        self._take(plan)

    async def change(self, plan: ChainPlan, pressure: Pressure) -> None:
        """Decide by another plan and other thresholds, from the next pod on."""
        async with self._one_at_a_time:
            self._take(plan)
            self.node.change(pressure)

    def _take(self, plan: ChainPlan) -> None:
        self._plan = plan
        self._without_node = only_remote(plan.additions)
        self._resizes_without_node = resizing_without_node(plan.resizes)
        # What pods take depends on the gates.
        self._known: dict[str, _Known] = {}

    @property
    def is_active(self) -> bool:
        """Whether anybody is to be asked beside the Topology Manager."""
        return self.node.is_known or self._without_node != Chain()

    def start(self) -> None:
        """Begin to follow what is admitted, and the node's pressure."""
        self._mirror.start()
        self.node.start()

    async def has_pods(self) -> bool:
        """Whether any pod is admitted. Raises Unavailable where the record cannot be read."""
        self._mirror.start()
        return bool(await self._mirror.pods())

    def answered(self, revision: int) -> None:
        """A decision of this revision went out: the next one must see it."""
        self._mirror.answered(revision)

    async def close(self) -> None:
        """Stop following."""
        await self.node.close()
        await self._mirror.close()

    async def admit(
        self, request: ad.AdmitRequest, data: bytes, ask: AskTopology
    ) -> ad.AdmitResponse:
        """Decide on the pod in `data`; `ask` asks the Topology Manager about it.

        Raises InvalidInput for a pod that cannot be read, Unavailable where the record of
        admitted pods cannot.
        """
        async with self._one_at_a_time:
            return await self._admit(request, data, ask, {})

    @property
    def others_wait(self) -> bool:
        """Whether anybody waits to have a pod judged."""
        return self._one_at_a_time.waiting > 0

    @asynccontextmanager
    async def sitting(self) -> AsyncIterator[Sitting]:
        """Decide on several pods before the first is recorded; nobody else does meanwhile."""
        async with self._one_at_a_time:
            yield Sitting(self._admit, self._mirror)

    async def _admit(
        self,
        request: ad.AdmitRequest,
        data: bytes,
        ask: AskTopology,
        unrecorded: Mapping[str, Unrecorded],
    ) -> ad.AdmitResponse:
        records = await self._mirror.pods()
        if unrecorded:
            records = {**records, **{uid: pod.record for uid, pod in unrecorded.items()}}
        pod = _read(parse_pod(data))
        if pod.uid in records and not self._strategies.judge_again:
            return await ask(request.dry_run)
        self._known = {
            uid: self._admitted(
                uid, unrecorded[uid].spec if uid in unrecorded else self._mirror.spec(uid)
            )
            for uid in records
        }
        asked = self._question(Operation.ADD, pod, request, data)
        topology = _Topology(ask, request.dry_run, _others(records, pod.uid))
        chain = self._plan.additions if self.node.is_known else self._without_node
        outcome = await self._strategies.walk(chain, asked, topology)
        return self._answer(outcome, request)

    async def resize(
        self, request: ad.AdmitRequest, data: bytes, ask: AskTopology
    ) -> ad.AdmitResponse:
        """Decide on other CPU or memory for an admitted pod (RSZ-1 to RSZ-6).

        The Topology Manager says first whether there is anything to resize, in a dry run: its
        record alone knows what the pod is allocated. It is asked last for keeps whatever the
        compatibility, so that a resize that a handler refuses leaves no trace.

        Raises what it raises: NOT_FOUND for an unknown pod, FAILED_PRECONDITION for what is no
        resize. Raises InvalidInput and Unavailable as `admit` does.
        """
        async with self._one_at_a_time:
            self._mirror.start()
            pod = _read(parse_pod(data))
            tried = await ask(True)
            if tried.already_admitted:
                tried.dry_run = request.dry_run
                return tried
            self._mirror.answered(tried.revision)
            records = await self._mirror.pods()
            if pod.uid not in records:
                raise NotFound(f'pod_uid: pod "{pod.uid}" is not admitted')
            self._known = {uid: self._admitted(uid, self._mirror.spec(uid)) for uid in records}
            asked = self._question(Operation.RESIZE, pod, request, data)
            topology = _Topology(ask, request.dry_run, _others(records, pod.uid), tried)
            chain = self._plan.resizes if self.node.is_known else self._resizes_without_node
            response = self._answer(await allocate_last(chain, asked, topology), request)
            answer_resize(response, records[pod.uid].resources)
            return response

    def _answer(
        self, outcome: Outcome[ad.AdmitResponse], request: ad.AdmitRequest
    ) -> ad.AdmitResponse:
        response = _response(outcome, self._mirror.revision)
        response.dry_run = request.dry_run
        # Before the next one is let in: it must see this one.
        self._mirror.answered(response.revision)
        return response

    def _question(
        self, operation: Operation, pod: AdmitPod, request: ad.AdmitRequest, data: bytes
    ) -> Question:
        """The pod among those that are admitted and those that only the caller knows."""
        others = dict(self._known)
        own = others.pop(pod.uid, None)
        for message in request.other_pods:
            uid = message.metadata.uid
            known = others.get(uid)
            if known is None and uid != pod.uid:
                others[uid] = self._known_as(b"", _read(message))
            elif known is not None and known.spec and message.HasField("status"):
                # What its containers really use; what they are allocated is in the record.
                status = resize_status(message.status)
                others[uid] = self._known_as(known.spec, replace(known.pod, status=status))
        for uid in request.preempted_pod_uids:
            others.pop(uid, None)
        asked = question(
            pod,
            operation,
            [known.pod for known in others.values()],
            {} if own is None else {pod.uid: allocation_of(own.pod, self._plan.resize)},
            _facts(self.node.facts(), request),
            self._plan.resize,
        )
        if asked.pod is not pod:
            data = with_resources(parse_pod(data), asked.pod).SerializeToString()
        return replace(
            asked,
            usage=summed(known.usage for known in others.values()),
            sent=Sent(pod=data, node=self.node.node_bytes, dry_run=request.dry_run),
        )

    def _admitted(self, uid: str, spec: bytes) -> _Known:
        """An admitted pod, read once."""
        known = self._known.get(uid)
        if known is not None and known.spec == spec:
            return known
        return self._known_as(spec, _read(parse_pod(spec)))

    def _known_as(self, spec: bytes, pod: AdmitPod) -> _Known:
        return _Known(spec, pod, pod_usage(pod, self._plan.gates))


def _facts(facts: NodeFacts, request: ad.AdmitRequest) -> NodeFacts:
    """The node, as the caller can read it anew or just has."""
    if request.HasField("fresh_node"):
        fresh = node_view(request.fresh_node)
        if facts.node is not None and fresh.name != facts.node.name:
            raise InvalidInput(
                invalid("fresh_node.metadata.name", fresh.name, f"this is {facts.node.name}")
            )
        return replace(facts, fresh_node=lambda: fresh)
    return replace(facts, caller_reads_node=request.can_read_node)


def _others(records: Mapping[str, pb.AdmissionRecord], uid: str) -> tuple[pb.AdmissionRecord, ...]:
    return tuple(record for other, record in records.items() if other != uid)


def _read(message: core_pb2.Pod) -> AdmitPod:
    pod, violations = read_pod(message)
    if violations:
        raise InvalidInput(*violations)
    return admit_pod(message, pod)


def _count(allocations: Iterable[pb.ContainerAllocation], devices: dict[str, int]) -> None:
    """Add the devices of containers to `devices`, by resource."""
    for allocation in allocations:
        for entry in allocation.devices:
            devices[entry.resource] = devices.get(entry.resource, 0) + len(entry.ids)


def _response(outcome: Outcome[ad.AdmitResponse], revision: int) -> ad.AdmitResponse:
    if outcome.response is not None:
        outcome.response.warnings.extend(outcome.warnings)
        return outcome.response
    response = ad.AdmitResponse(
        verdict=_VERDICTS[outcome.end],
        handler=outcome.handler,
        reason=outcome.verdict.reason,
        message=outcome.verdict.message,
        warnings=outcome.warnings,
        revision=revision,
    )
    if outcome.victims:
        response.reason, response.message = VICTIM_REASON, VICTIMS_FIRST
        response.retry_after.SetInParent()
        for victim in outcome.victims:
            response.victims.add(
                pod_uid=victim.uid, namespace=victim.pod.namespace, name=victim.pod.name
            )
    elif outcome.end is End.DEFERRED:
        seconds = SOFT_RETRY_SECONDS if outcome.retry_after is None else outcome.retry_after
        response.retry_after.FromNanoseconds(round(seconds * 1e9))
    return response
