"""The Topology Manager: one admission from its turn to its record, and what follows a pod after.

It brings the parts together and decides nothing itself: the scope decides, the fan-out asks
the providers, the records are the commit point. The order of an admission:

    turn -> providers know the outcome of the last one -> scope (hints, merge, allocate ...)
         -> refused, given up, or only wanted to know: Abort to all, then the answer
         -> admitted: the row is written and synced, then the answer; Commit goes out unwaited

A call that is cancelled before its row is written is aborted; once the write has begun it is
carried to its end, and asking again returns the record.
"""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from numalign.errors import (
    Deferred,
    FieldViolation,
    InvalidInput,
    NotPrepared,
    SpecChanged,
    Unavailable,
)
from numalign.model.feature_gates import FeatureGates
from numalign.model.hint import TopologyHint
from numalign.model.ids import AdmissionId, PodUid
from numalign.model.pod import Pod
from numalign.model.pod_change import changed_field
from numalign.model.qos import qos_class
from numalign.provider.hint_messages import hint_from_message
from numalign.provider.pod_cache import PodCache
from numalign.store.carried import carried_through
from numalign.telemetry.logs import get_logger, log_fields
from numalign.topology.fanout import Fanout
from numalign.topology.hint_store import HintStore
from numalign.topology.messages import containers_to_messages
from numalign.topology.picture import Picture
from numalign.topology.pre_start import pre_start
from numalign.topology.provider_handle import ProviderFault, ProviderHandle
from numalign.topology.reasons import unexpected_rejection
from numalign.topology.records import Admitted, Records
from numalign.topology.registry import ProviderRegistry, all_delivered
from numalign.topology.scope import Scope, ScopeResult
from numalign.topology.settlement import Settlement
from numalign.topology.strategies import TopologyStrategies
from numalign.topology.turnstile import Turnstile
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb

T = TypeVar("T")

_log = get_logger("topology")

TAKEN_OVER = (
    "the record of admitted pods was lost; this pod keeps what the providers hold for it and was "
    "not judged again"
)
"""Said to the agent that names a pod again after the record was lost."""

HANDLER = "topology-manager"
"""Name of the Topology Manager in the chain of admit handlers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitCall:
    """What the caller wants: a pod as bytes and as read, and what to do with it."""

    data: bytes
    pod: Pod
    owner: str
    dry_run: bool
    explain: pb.ExplainLevel.ValueType


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """How an Admit ended. `result` is None and the id empty where the record answered.

    `waited` is how many seconds the call was in the queue.
    """

    response: ad.AdmitResponse
    waited: float
    result: ScopeResult | None = None
    admission_id: str = ""


Explainer = Callable[
    [Pod, ScopeResult, Fanout, pb.ExplainLevel.ValueType], Awaitable[pb.Explanation]
]
"""Says how a decision was reached, while the providers still hold it tentatively."""


class TopologyManager:
    """One node's Topology Manager. Everything that changes the books takes a turn."""

    def __init__(
        self,
        *,
        scope: Scope,
        gates: FeatureGates,
        records: Records,
        hints: HintStore,
        picture: Picture,
        registry: ProviderRegistry,
        turnstile: Turnstile,
        strategies: TopologyStrategies,
        explainer: Explainer,
        settlement: Settlement,
        pods: PodCache,
    ) -> None:
        self._scope = scope
        self._gates = gates
        self._records = records
        self._hints = hints
        self._picture = picture
        self._registry = registry
        self._turnstile = turnstile
        self._strategies = strategies
        self._explainer = explainer
        self._settlement = settlement
        self._pods = pods
        self._incarnation = uuid.uuid4().hex
        self._numbers = itertools.count(1)

    async def admit(self, call: AdmitCall) -> Decision:
        """Decide on one pod."""
        clock = asyncio.get_running_loop().time
        asked = clock()
        async with self._turnstile.turn():
            waited = clock() - asked
            known = self._records.get(call.pod.uid)
            if known is not None and self._strategies.trusts_record:
                return Decision(response=self._recorded(known, call), waited=waited)
            await self._registry.ready(self._introduce)
            if call.pod.uid in self._settlement.strays:
                response = await carried_through(self._take_over(call))
                return Decision(response=response, waited=waited)
            admission_id = self._next_id()
            with log_fields(admission_id=admission_id):
                response, result = await self._decide(call, admission_id)
        return Decision(response=response, result=result, admission_id=admission_id, waited=waited)

    async def release(self, pod_uid: PodUid) -> int:
        """Give back everything that a pod holds; the revision after. NotFound if unknown."""
        async with self._turnstile.turn():
            if pod_uid not in self._settlement.strays:
                self._records.require(pod_uid)
            return await carried_through(self._release((pod_uid,)))

    async def reconcile(self, picture: ad.ReconcileRequest) -> ad.ReconcileResponse:
        """Release the pods of one owner that it no longer has (never a pod in flight)."""
        async with self._turnstile.turn():
            return await carried_through(self._reconcile(picture))

    async def prepare_container(
        self, pod_uid: PodUid, container: str
    ) -> ad.PrepareContainerResponse:
        """What to apply to a container, from every provider."""
        async with self._turnstile.turn():
            admitted = self._records.require(pod_uid)
            self._require_container(admitted, container)
            await self._registry.ready(self._introduce)
        await pre_start(self._registry.handles, admitted.pod, container)
        async with self._turnstile.turn():
            admitted = self._records.require(pod_uid)
            await self._registry.ready(self._introduce)
            request = hp.HintProviderPrepareContainerRequest(pod=admitted.pod, container=container)
            parts = await self._each(lambda h: h.stub.PrepareContainer(request, timeout=h.timeout))
            return self._prepared(container, parts)

    async def add_container(self, pod_uid: PodUid, container: str, container_id: str) -> None:
        """A container is about to start: what finished init containers held is freed."""
        async with self._turnstile.turn():
            admitted = self._records.require(pod_uid)
            self._require_container(admitted, container)
            await self._registry.ready(self._introduce)
            await carried_through(self._add_container(admitted, container, container_id))

    async def remove_container(self, container_id: str) -> None:
        """A container is gone. An unknown id is not an error (TM-51)."""
        async with self._turnstile.turn():
            self._hints.remove_container(container_id)
            await self._records.remove_container(container_id)

    def affinity(self, pod_uid: PodUid, container: str) -> TopologyHint:
        """The stored hint of a container (TM-50)."""
        return self._hints.get(pod_uid, container)

    async def register(self, handle: ProviderHandle) -> None:
        """Add a third-party provider."""
        async with self._turnstile.turn():
            await self._registry.register(handle)

    async def settle(self) -> None:
        """Bring the record and the books of every provider together now.

        Raises Unavailable where a provider does not answer; the others are settled then.
        """
        async with self._turnstile.turn():
            self._registry.forget_refitted()
            await self._registry.ready(self._introduce)

    @asynccontextmanager
    async def reconfiguring(self) -> AsyncIterator[None]:
        """Hold the node's turn with no admission open; settle with every provider after.

        A provider that does not answer then is settled with when it does.
        """
        async with self._turnstile.turn():
            await all_delivered(self._registry.handles)
            yield
            self._registry.forget_processes()
            try:
                await self._registry.ready(self._introduce)
            except Unavailable as error:
                _log.warning("not settled after the change yet", error=str(error))

    def reconfigure(
        self, scope: Scope, gates: FeatureGates, explainer: Explainer, config_generation: int
    ) -> None:
        """Decide by these from now on. Called inside `reconfiguring`."""
        self._scope = scope
        self._gates = gates
        self._explainer = explainer
        self._settlement.config_generation = config_generation

    def _next_id(self) -> AdmissionId:
        return AdmissionId(f"{self._incarnation}-{next(self._numbers)}")

    async def _take_over(self, call: AdmitCall) -> ad.AdmitResponse:
        """Record a pod that providers hold and the record has lost, without judging it."""
        handles = self._registry.handles
        record = await self._settlement.take_over(call.pod, call.data, handles)
        self._describe(record, call)
        if not call.dry_run:
            await self._records.admit(Admitted(self._next_id(), call.data, record))
            self._picture.admitted(call.pod.uid)
            await self._settlement.forget((call.pod.uid,), handles)
        return ad.AdmitResponse(
            verdict=pb.VERDICT_ADMITTED,
            allocations=record.allocations,
            pod_allocation=record.pod_allocation,
            already_admitted=True,
            warnings=(TAKEN_OVER, *record.problems),
            revision=self._records.revision,
            dry_run=call.dry_run,
        )

    def _describe(self, record: pb.AdmissionRecord, call: AdmitCall) -> None:
        pod = call.pod
        record.pod_uid = pod.uid
        record.namespace = pod.namespace
        record.name = pod.name
        record.owner = call.owner
        record.qos_class = qos_class(pod, self._gates)
        record.config_generation = self._settlement.config_generation
        record.containers.extend(containers_to_messages(pod))

    def _recorded(self, known: Admitted, call: AdmitCall) -> ad.AdmitResponse:
        record = known.message
        if record.owner != call.owner:
            raise SpecChanged(
                "owner", f'owner: pod "{known.pod_uid}" is admitted for owner "{record.owner}"'
            )
        changed = changed_field(self._pods.decode(known.pod), call.pod, self._gates)
        if changed is not None:
            raise SpecChanged(
                changed,
                f'{changed}: pod "{known.pod_uid}" is admitted with another value; '
                "ask for a resize to change it",
            )
        return ad.AdmitResponse(
            verdict=pb.VERDICT_ADMITTED,
            allocations=record.allocations,
            pod_allocation=record.pod_allocation,
            already_admitted=True,
            warnings=record.problems,
            revision=record.revision,
            dry_run=call.dry_run,
        )

    async def _decide(
        self, call: AdmitCall, admission_id: AdmissionId
    ) -> tuple[ad.AdmitResponse, ScopeResult]:
        fanout = Fanout(
            self._registry.handles,
            admission_id,
            call.data,
            dry_run=call.dry_run,
            one_by_one=self._strategies.one_by_one,
        )
        try:
            try:
                result = await self._scope.admit(call.pod, fanout)
            except ProviderFault as fault:
                refusal = unexpected_rejection(str(fault))
                result = ScopeResult(
                    admitted=False,
                    reason=refusal.reason,
                    message=refusal.message,
                    keeps_nothing=True,
                )
            except Deferred as deferred:
                result = ScopeResult(
                    admitted=False,
                    reason=deferred.reason,
                    message=str(deferred),
                    keeps_nothing=True,
                    retry_after=deferred.retry_after,
                )
            response = await self._answer(call, result, fanout)
        except BaseException:
            await carried_through(self._abort(fanout, admission_id, hp.LEFTOVERS_DROP))
            raise
        if result.admitted and not call.dry_run:
            await carried_through(self._commit(call, fanout, admission_id, result, response))
        else:
            await carried_through(self._refuse(call, fanout, admission_id, result))
        response.revision = self._records.revision
        return response, result

    async def _answer(
        self, call: AdmitCall, result: ScopeResult, fanout: Fanout
    ) -> ad.AdmitResponse:
        response = ad.AdmitResponse(
            verdict=_verdict(result),
            handler="" if result.admitted else HANDLER,
            reason=result.reason,
            message=result.message,
            warnings=(*fanout.warnings, *result.warnings),
            dry_run=call.dry_run,
        )
        if result.retry_after is not None:
            response.retry_after.FromMilliseconds(round(result.retry_after * 1000))
        if result.admitted or (self._strategies.keeps_leftovers and not result.keeps_nothing):
            response.allocations.extend(fanout.allocations(call.pod, dict(result.affinities)))
            response.pod_allocation.CopyFrom(fanout.pod_allocation)
        if call.explain >= pb.EXPLAIN_LEVEL_SUMMARY:
            explanation = await self._explainer(call.pod, result, fanout, call.explain)
            response.explanation.CopyFrom(explanation)
        return response

    async def _commit(
        self,
        call: AdmitCall,
        fanout: Fanout,
        admission_id: AdmissionId,
        result: ScopeResult,
        response: ad.AdmitResponse,
    ) -> None:
        pod = call.pod
        record = pb.AdmissionRecord(
            allocations=response.allocations, pod_allocation=response.pod_allocation
        )
        self._describe(record, call)
        try:
            await self._records.admit(Admitted(admission_id, call.data, record))
        except BaseException:
            await self._abort(fanout, admission_id, hp.LEFTOVERS_DROP)
            raise
        self._hints.put(pod.uid, result.affinities)
        self._picture.admitted(pod.uid)
        request = hp.CommitRequest(admission_id=admission_id)
        for handle in fanout.handles:
            handle.deliver_later(_bound(handle.stub.Commit, request, handle.timeout))
        # What a provider took before it was left out is not in the record.
        undo = hp.AbortRequest(admission_id=admission_id, leftovers=hp.LEFTOVERS_DROP)
        for handle in fanout.left_out:
            handle.deliver_later(_bound(handle.stub.Abort, undo, handle.timeout))

    async def _refuse(
        self, call: AdmitCall, fanout: Fanout, admission_id: AdmissionId, result: ScopeResult
    ) -> None:
        stays = (
            self._strategies.keeps_leftovers
            and not call.dry_run
            and not result.admitted
            and not result.keeps_nothing
        )
        await self._abort(fanout, admission_id, hp.LEFTOVERS_KEEP if stays else hp.LEFTOVERS_DROP)
        if stays:
            self._hints.put(call.pod.uid, result.affinities)
            self._picture.gone(call.pod.uid)
            await self._records.release((call.pod.uid,))

    async def _abort(
        self, fanout: Fanout, admission_id: AdmissionId, leftovers: hp.Leftovers.ValueType
    ) -> None:
        request = hp.AbortRequest(admission_id=admission_id, leftovers=leftovers)
        for handle in (*fanout.handles, *fanout.left_out):
            handle.deliver(_bound(handle.stub.Abort, request, handle.timeout))
        await all_delivered((*fanout.handles, *fanout.left_out))

    async def _release(self, pod_uids: tuple[PodUid, ...]) -> int:
        await self._records.release(pod_uids)
        for pod_uid in pod_uids:
            self._picture.gone(pod_uid)
            self._hints.drop_pod(pod_uid)
        request = hp.HintProviderReleaseRequest(pod_uids=pod_uids)
        await all_delivered(self._registry.handles)
        for handle in self._registry.handles:
            handle.deliver(_bound(handle.stub.Release, request, handle.timeout))
        await all_delivered(self._registry.handles)
        await self._settlement.forget(pod_uids, self._registry.handles)
        return self._records.revision

    async def _reconcile(self, picture: ad.ReconcileRequest) -> ad.ReconcileResponse:
        if not self._settlement.whole:
            await self._registry.ready(self._introduce)
        named = {PodUid(uid) for uid in picture.active_pod_uids}
        known = {a.pod_uid for a in self._records.all() if a.message.owner == picture.owner}
        self._picture.heard(
            picture.owner,
            named & known,
            tuple(picture.running_containers),
            ready=picture.sources_ready,
        )
        gone = self._settlement.unclaimed(picture.owner, named, ready=picture.sources_ready)
        if picture.sources_ready:
            gone += tuple(
                a.pod_uid
                for a in self._records.all()
                if a.message.owner == picture.owner
                and a.pod_uid not in named
                and a.message.revision <= picture.as_of_revision
            )
        if gone:
            await self._release(gone)
        if self._strategies.waits_for_sources:
            self._registry.forget_processes()
            await self._registry.ready(self._introduce)
        return ad.ReconcileResponse(
            released_pod_uids=gone,
            unknown_pod_uids=sorted(named - known),
            revision=self._records.revision,
        )

    async def _add_container(self, admitted: Admitted, container: str, container_id: str) -> None:
        self._hints.add_container(container_id, admitted.pod_uid, container)
        await self._records.add_container(container_id, admitted.pod_uid, container)
        request = hp.HintProviderAddContainerRequest(
            pod=admitted.pod, container=container, container_id=container_id
        )
        parts = await self._each(lambda h: h.stub.AddContainer(request, timeout=h.timeout))
        held = {
            a.container: pb.ContainerAllocation(container=a.container, affinity=a.affinity)
            if a.HasField("affinity")
            else pb.ContainerAllocation(container=a.container)
            for a in admitted.message.allocations
        }
        for part in parts:
            for allocation in part.allocations:
                held[allocation.container].MergeFrom(allocation)
        changed = pb.AdmissionRecord()
        changed.CopyFrom(admitted.message)
        del changed.allocations[:]
        changed.allocations.extend(held.values())
        if changed != admitted.message:
            await self._records.change(Admitted(admitted.admission_id, admitted.pod, changed))

    async def _introduce(self, handle: ProviderHandle) -> None:
        await self._settlement.introduce(handle, self._registry.handles)

    def _require_container(self, admitted: Admitted, container: str) -> None:
        if all(a.container != container for a in admitted.message.allocations):
            raise InvalidInput(
                FieldViolation(
                    "container_name",
                    f'pod "{admitted.pod_uid}" has no container "{container}"',
                )
            )

    async def _each(self, call: Callable[[ProviderHandle], Awaitable[T]]) -> list[T]:
        return await asyncio.gather(
            *(h.call(_thunk(call, h)) for h in self._registry.handles if h.instance_id)
        )

    def _prepared(
        self, container: str, parts: list[hp.HintProviderPrepareContainerResponse]
    ) -> ad.PrepareContainerResponse:
        response = ad.PrepareContainerResponse(
            allocation=pb.ContainerAllocation(container=container)
        )
        for part in parts:
            if part.HasField("failure"):
                raise NotPrepared(part.failure.message)
            response.allocation.MergeFrom(part.allocation)
            response.exclusive_cpus |= part.exclusive_cpus
            if part.HasField("cpus"):
                response.cpus = part.cpus
            if part.HasField("mems"):
                response.mems = part.mems
            if part.HasField("edits"):
                response.edits.MergeFrom(part.edits)
        return response


def _verdict(result: ScopeResult) -> pb.Verdict.ValueType:
    if result.admitted:
        return pb.VERDICT_ADMITTED
    return pb.VERDICT_REJECTED if result.retry_after is None else pb.VERDICT_DEFERRED


def restore_hints(hints: HintStore, records: Records) -> None:
    """Fill the hint store from a trusted record."""
    for admitted in records.all():
        hints.put(
            admitted.pod_uid,
            {
                a.container: hint_from_message(a.affinity)
                for a in admitted.message.allocations
                if a.HasField("affinity")
            },
        )
    for container_id, pod_uid, name in records.containers():
        hints.add_container(container_id, pod_uid, name)


def _bound(
    method: Callable[..., Awaitable[object]], request: object, timeout: float
) -> Callable[[], Awaitable[object]]:
    return lambda: method(request, timeout=timeout)


def _thunk(
    call: Callable[[ProviderHandle], Awaitable[T]], handle: ProviderHandle
) -> Callable[[], Awaitable[T]]:
    return lambda: call(handle)
