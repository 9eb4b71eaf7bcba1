"""One admission, once it has its turn: from the scope's decision to Commit or Abort.

Separate from the manager, which gives turns and answers from the record: this file holds the
order on which everything that survives a crash depends.

    scope (hints, merge, allocate ...)
      -> refused, given up, or only wanted to know: Abort to all, then the answer
      -> admitted: the row is written and synced, then the answer; Commit goes out unwaited

A call that is cancelled before its row is written is aborted; once the write has begun it is
carried to its end, and asking again returns the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from numalign.errors import NumalignError
from numalign.model.feature_gates import FeatureGates
from numalign.model.ids import AdmissionId
from numalign.model.pod import Pod
from numalign.model.qos import qos_class
from numalign.store.carried import carried_through
from numalign.topology.allocated import (
    holds_the_same,
    keep_what_was_not_asked,
    resources_to_message,
)
from numalign.topology.as_a_whole import AsAWhole, result_of
from numalign.topology.claim_messages import claim_hints
from numalign.topology.explainer import Explainer
from numalign.topology.fanout import Fanout
from numalign.topology.hint_store import HintStore
from numalign.topology.lost_parts import LostParts
from numalign.topology.messages import containers_to_messages
from numalign.topology.picture import Picture
from numalign.topology.provider_handle import bound
from numalign.topology.records import Admitted, Records
from numalign.topology.registry import ProviderRegistry, all_delivered
from numalign.topology.remembered import Remembered, Way
from numalign.topology.scope import Scope, ScopeResult
from numalign.topology.strategies import TopologyStrategies
from numalign.topology.wording import Explaining, unexplained
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import claims_pb2 as cl
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb

HANDLER = "topology-manager"
"""Name of the Topology Manager in the chain of admit handlers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitCall:
    """What the caller wants: a pod as bytes and as read, and what to do with it.

    With `remember` the way is remembered, so that it can be explained afterwards.
    """

    data: bytes
    pod: Pod
    owner: str
    dry_run: bool
    explain: pb.ExplainLevel.ValueType
    resize: bool = False
    remember: bool = False
    claims: tuple[cl.FetchedClaim, ...] = ()


@dataclass(frozen=True, slots=True)
class Resized:
    """An admitted pod as it is before a resize, and its init containers that are not judged."""

    before: Admitted
    finished: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """How an Admit ended. `result` is None and the id empty where the record answered.

    `waited` is how many seconds the call was in the queue, `explaining` the explanation that was
    asked for, and `elsewhere` what it is to say besides: what else would have taken the pod.
    """

    response: ad.AdmitResponse
    waited: float
    result: ScopeResult | None = None
    admission_id: str = ""
    explaining: Explaining | None = None
    elsewhere: str = ""

    async def explain(self) -> None:
        """Put the explanation into the answer. To be called once, when the turn is over."""
        if self.explaining is not None:
            self.response.explanation.CopyFrom(await self.explaining.done(self.elsewhere))


@dataclass(frozen=True, slots=True)
class Judged:
    """What a pod was told and why; `explaining` is None where no explanation was asked for.

    `result` is None where no scope was asked.
    """

    response: ad.AdmitResponse
    result: ScopeResult | None
    explaining: Explaining | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidingParts:
    """What decisions are made with; another one after the configuration changed.

    `other_scope` is the one that is not configured, `laxer` are policies that refuse less, by
    name: what would have fitted is tried with them. `retry` None: a refusal is the last word.
    """

    scope: Scope
    gates: FeatureGates
    explainer: Explainer
    config_generation: int
    other_scope: Scope | None = None
    laxer: Mapping[str, Scope] = field(default_factory=dict)
    retry: AsAWhole | None = None


class Decider:
    """Decides on one pod at a time; its caller holds the node's turn."""

    def __init__(
        self,
        *,
        parts: DecidingParts,
        records: Records,
        hints: HintStore,
        picture: Picture,
        registry: ProviderRegistry,
        strategies: TopologyStrategies,
        lost: LostParts,
        claim_nodes: tuple[int, ...],
    ) -> None:
        """Make it; `claim_nodes` are the nodes that claims can hint at, () without such hints."""
        self.parts = parts
        self.remembered: Remembered[AdmitCall] = Remembered()
        self._records = records
        self._hints = hints
        self._picture = picture
        self._registry = registry
        self._strategies = strategies
        self._lost = lost
        self._claim_nodes = claim_nodes

    async def decide(
        self, call: AdmitCall, admission_id: AdmissionId, resized: Resized | None = None
    ) -> Judged:
        """Decide, and keep what was decided. When it raises, nothing was kept.

        With `resized`, the pod of the call takes the place of that one, or leaves it as it is.
        """
        fanout = self.ask(call, admission_id)
        try:
            response, result, explaining = await self.attempt(call, fanout, resized)
            if resized is None and self.retries(call, result):
                await carried_through(self.abort(call, fanout, admission_id, hp.LEFTOVERS_DROP))
                # To the providers an admission that is over stays over.
                admission_id = AdmissionId(f"{admission_id}-whole")
                fanout = self.ask(call, admission_id)
                again = await self.attempt_as_a_whole(call, fanout, result)
                if again is not None:
                    response, result, explaining = again
        except BaseException:
            await carried_through(self.abort(call, fanout, admission_id, hp.LEFTOVERS_DROP))
            raise
        if result.admitted and not call.dry_run:
            commit = self._commit(call, fanout, admission_id, result, response, resized)
            await carried_through(commit)
        else:
            await carried_through(self._refuse(call, fanout, admission_id, result, resized))
        response.revision = self._records.revision
        return Judged(response, result, explaining)

    def ask(self, call: AdmitCall, admission_id: AdmissionId, *, group: bool = False) -> Fanout:
        """The providers, about the pod."""
        return Fanout(
            self._registry.handles,
            admission_id,
            call.data,
            dry_run=call.dry_run,
            one_by_one=self._strategies.one_by_one,
            claims=claim_hints(call.data, call.claims, self._claim_nodes),
            group=group,
        )

    async def attempt(
        self, call: AdmitCall, fanout: Fanout, resized: Resized | None = None
    ) -> tuple[ad.AdmitResponse, ScopeResult, Explaining | None]:
        """Decide; what the providers have taken then is kept or taken back by the caller."""
        result = await result_of(self.parts.scope, _judged(call.pod, resized), fanout)
        if result.admitted:
            self._refuse_what_others_have(call.pod, fanout)
        response = self._answer(call, result, fanout, resized)
        explainer = self.parts.explainer
        return response, result, await self._explaining(call, result, fanout, explainer)

    def retries(self, call: AdmitCall, result: ScopeResult) -> bool:
        """Whether the pod is to be decided on as a whole before it is refused."""
        retry = self.parts.retry
        return retry is not None and retry.is_for(call.pod, result)

    async def attempt_as_a_whole(
        self, call: AdmitCall, fanout: Fanout, refused: ScopeResult
    ) -> tuple[ad.AdmitResponse, ScopeResult, Explaining | None] | None:
        """Decide once more, over the books as they were; None where that is a refusal as well.

        What the providers have taken then is kept or taken back by the caller.
        """
        retry = self.parts.retry
        if retry is None:
            return None
        result = await result_of(retry.scope, call.pod, fanout)
        if not result.admitted:
            return None
        self._refuse_what_others_have(call.pod, fanout)
        response = self._answer(call, result, fanout, None)
        response.warnings.append(retry.warning(refused))
        return response, result, await self._explaining(call, result, fanout, retry.explainer)

    def _refuse_what_others_have(self, pod: Pod, fanout: Fanout) -> None:
        for handle in fanout.handles:
            if not handle.built_in:
                self._lost.refuse(handle.name, pod.uid, fanout.devices_of(handle))

    def _answer(
        self, call: AdmitCall, result: ScopeResult, fanout: Fanout, resized: Resized | None
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
        if result.admitted or self._leaves_something(result, resized):
            response.allocations.extend(fanout.allocations(call.pod, dict(result.affinities)))
            response.pod_allocation.CopyFrom(fanout.pod_allocation)
        if result.admitted and resized is not None:
            before = resized.before.message
            left_out = {handle.name for handle in fanout.left_out}
            keep_what_was_not_asked(response.allocations, before, left_out)
            if self._stays(response, resized):
                del response.allocations[:]
                response.allocations.extend(before.allocations)
        return response

    async def _explaining(
        self, call: AdmitCall, result: ScopeResult, fanout: Fanout, explainer: Explainer
    ) -> Explaining | None:
        """What explains as far as it was asked for; the way is remembered as far as it is wanted.

        What providers know only until the pod is undone is asked of them now.
        """
        asked = call.explain >= pb.EXPLAIN_LEVEL_SUMMARY
        remember = call.remember and not call.dry_run
        if not asked and not remember:
            return None
        try:
            way = await explainer.way(call.pod, result, fanout)
        except NumalignError as error:
            # Who did not ask for an explanation gets the decision without one.
            if asked:
                raise
            self.remembered.keep(call.pod.uid, Way(Explaining(partial(unexplained, error))))
            return None
        merges = len(result.merges)
        if remember:
            refused = call if result.refused_by_policy and not call.resize else None
            explaining = Explaining(partial(way, pb.EXPLAIN_LEVEL_FULL), merges)
            self.remembered.keep(call.pod.uid, Way(explaining, refused, self._records.revision))
        return Explaining(partial(way, call.explain), merges) if asked else None

    async def _commit(
        self,
        call: AdmitCall,
        fanout: Fanout,
        admission_id: AdmissionId,
        result: ScopeResult,
        response: ad.AdmitResponse,
        resized: Resized | None,
    ) -> None:
        pod = call.pod
        record = self.record_of(call, response)
        if resized is not None:
            record.claims_prepared = resized.before.message.claims_prepared
        stays = resized is not None and self._stays(response, resized)
        if resized is not None and stays:
            record.config_generation = resized.before.message.config_generation
            record.problems.extend(resized.before.message.problems)
        try:
            await self._records.admit(Admitted(admission_id, call.data, record))
        except BaseException:
            await self.abort(call, fanout, admission_id, hp.LEFTOVERS_DROP)
            raise
        if not stays:
            self._hints.put(pod.uid, result.affinities)
        self._picture.admitted(pod.uid)
        request = hp.CommitRequest(admission_id=admission_id)
        for handle in fanout.handles:
            handle.deliver_later(bound(handle.stub.Commit, request, handle.timeout))
        # What a provider took before it was left out is not in the record.
        undo = hp.AbortRequest(admission_id=admission_id, leftovers=hp.LEFTOVERS_DROP)
        for handle in fanout.left_out:
            handle.deliver_later(bound(handle.stub.Abort, undo, handle.timeout))

    async def _refuse(
        self,
        call: AdmitCall,
        fanout: Fanout,
        admission_id: AdmissionId,
        result: ScopeResult,
        resized: Resized | None,
    ) -> None:
        stays = not call.dry_run and self._leaves_something(result, resized)
        leftovers = hp.LEFTOVERS_KEEP if stays else hp.LEFTOVERS_DROP
        await self.abort(call, fanout, admission_id, leftovers)
        if stays:
            self._hints.put(call.pod.uid, result.affinities)
            self._picture.gone(call.pod.uid)
            await self._records.release((call.pod.uid,))

    def _stays(self, response: ad.AdmitResponse, resized: Resized) -> bool:
        """Whether a resize moves nothing: then all that is said of the pod's placement stays."""
        return not self._strategies.resizes_as_new and holds_the_same(
            resized.before.message, response
        )

    def _leaves_something(self, result: ScopeResult, resized: Resized | None) -> bool:
        """Whether what a refused pod was given stays; a pod that runs keeps what it had only."""
        return (
            self._strategies.keeps_leftovers
            and resized is None
            and not result.admitted
            and not result.keeps_nothing
        )

    async def abort(
        self,
        call: AdmitCall,
        fanout: Fanout,
        admission_id: AdmissionId,
        leftovers: hp.Leftovers.ValueType,
    ) -> None:
        """Have all providers take back what they took."""
        request = hp.AbortRequest(
            admission_id=admission_id, leftovers=leftovers, pod_uid=call.pod.uid
        )
        for handle in (*fanout.handles, *fanout.left_out):
            handle.deliver(bound(handle.stub.Abort, request, handle.timeout))
        await all_delivered((*fanout.handles, *fanout.left_out))

    def record_of(self, call: AdmitCall, response: ad.AdmitResponse) -> pb.AdmissionRecord:
        """What is recorded of a pod that is admitted with this answer."""
        record = pb.AdmissionRecord(
            allocations=response.allocations, pod_allocation=response.pod_allocation
        )
        self.describe(record, call)
        return record

    def describe(self, record: pb.AdmissionRecord, call: AdmitCall) -> None:
        """Write into a record which pod it is of, and under what it was placed."""
        pod = call.pod
        record.pod_uid = pod.uid
        record.namespace = pod.namespace
        record.name = pod.name
        record.owner = call.owner
        record.qos_class = qos_class(pod, self.parts.gates)
        record.config_generation = self.parts.config_generation
        record.containers.extend(containers_to_messages(pod))
        record.resources.CopyFrom(resources_to_message(pod, self.parts.gates))


def _judged(pod: Pod, resized: Resized | None) -> Pod:
    """The pod without what has ended."""
    if resized is None or not resized.finished:
        return pod
    remaining = tuple(c for c in pod.init_containers if c.name not in resized.finished)
    return replace(pod, init_containers=remaining)


def _verdict(result: ScopeResult) -> pb.Verdict.ValueType:
    if result.admitted:
        return pb.VERDICT_ADMITTED
    return pb.VERDICT_REJECTED if result.retry_after is None else pb.VERDICT_DEFERRED
