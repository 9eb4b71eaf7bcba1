"""The Topology Manager: gives pods and what follows them their turn, and answers from the record.

It brings the parts together and decides nothing itself. A pod that is admitted already is
answered from the record, one that providers hold and the record lost is taken over, any other
is decided on (`decision`). What follows a pod is in `container_life`.
"""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

from numalign.errors import Unavailable
from numalign.model.hint import TopologyHint
from numalign.model.ids import AdmissionId, PodUid
from numalign.provider.hint_messages import hint_from_message
from numalign.provider.pod_cache import PodCache
from numalign.store.carried import carried_through
from numalign.telemetry.logs import get_logger, log_fields
from numalign.topology.claim_preparation import ClaimPreparation
from numalign.topology.container_life import ContainerLife
from numalign.topology.decision import AdmitCall, Decider, DecidingParts, Decision, Judged
from numalign.topology.group import Group
from numalign.topology.hint_store import HintStore
from numalign.topology.picture import Picture
from numalign.topology.pod_stream import PodStream
from numalign.topology.provider_handle import ProviderHandle, bound
from numalign.topology.records import Admitted, Records
from numalign.topology.registry import ProviderRegistry, all_delivered
from numalign.topology.resizing import Resizing
from numalign.topology.settlement import Settlement
from numalign.topology.strategies import TopologyStrategies
from numalign.topology.trials import fits_elsewhere
from numalign.topology.turnstile import Turnstile
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import dynamic_resources_pb2_grpc as dr_grpc
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb

T = TypeVar("T")

_log = get_logger("topology")

MOST_EXPLAINED_BYTES = 1 << 20
"""Explanations asked for afterwards are told until they are so long together."""

TAKEN_OVER = (
    "the record of admitted pods was lost; this pod keeps what the providers hold for it and was "
    "not judged again"
)
"""Said to the agent that names a pod again after the record was lost."""


class TopologyManager:
    """One node's Topology Manager. Everything that changes the books takes a turn."""

    def __init__(
        self,
        *,
        parts: DecidingParts,
        records: Records,
        hints: HintStore,
        picture: Picture,
        registry: ProviderRegistry,
        turnstile: Turnstile,
        strategies: TopologyStrategies,
        settlement: Settlement,
        pods: PodCache,
        dynamic_resources: dr_grpc.DynamicResourcesAsyncStub | None = None,
        claim_nodes: tuple[int, ...] = (),
    ) -> None:
        """Put it together; without `dynamic_resources`, claims of pods are not looked at.

        `claim_nodes` are the NUMA nodes that claimed devices can hint at; () turns that off.
        """
        self._records = records
        self._hints = hints
        self._picture = picture
        self._registry = registry
        self._turnstile = turnstile
        self._strategies = strategies
        self._settlement = settlement
        self._decider = Decider(
            parts=parts,
            records=records,
            hints=hints,
            picture=picture,
            registry=registry,
            strategies=strategies,
            lost=settlement.lost_parts,
            claim_nodes=claim_nodes,
        )
        self._resizing = Resizing(self._decider, settlement, pods, as_new=strategies.resizes_as_new)
        self.claims = ClaimPreparation(records, turnstile, dynamic_resources)
        self.containers = ContainerLife(
            records=records,
            hints=hints,
            registry=registry,
            turnstile=turnstile,
            introduce=self._introduce,
            claims=self.claims,
        )
        self._incarnation = uuid.uuid4().hex
        self._numbers = itertools.count(1)

    async def admit(self, call: AdmitCall) -> Decision:
        """Decide on one pod."""
        clock = asyncio.get_running_loop().time
        asked = clock()
        async with self._turnstile.turn():
            waited = clock() - asked
            decision = await (self._resize if call.resize else self._add)(call, waited)
        await decision.explain()
        return decision

    def admit_pods(self) -> PodStream:
        """Decide on pods in order, those that follow each other closely in groups."""
        return PodStream(
            self._turnstile,
            one=lambda call, waited: (self._resize if call.resize else self._add)(call, waited),
            group=self._group_for,
        )

    async def release(self, pod_uid: PodUid) -> int:
        """Give back everything that a pod holds; the revision after. NotFound if unknown.

        An Admit that its caller has given up may be about to record the pod, so it counts as
        unknown only once that Admit has ended.
        """
        if not self._is_known(pod_uid):
            async with self._turnstile.turn():
                self._require_known(pod_uid)
        await self.claims.unprepare(pod_uid)
        async with self._turnstile.turn():
            self._require_known(pod_uid)
            return await carried_through(self._release((pod_uid,)))

    async def reconcile(self, picture: ad.ReconcileRequest) -> ad.ReconcileResponse:
        """Release the pods of one owner that it no longer has (never a pod in flight).

        Raises InvalidInput for a revision that the node has not come to.
        """
        async with self._turnstile.turn():
            self._records.require_past("as_of_revision", picture.as_of_revision)
            outcome = await carried_through(self._reconcile(picture))
        if picture.sources_ready:
            outcome.problems.extend(await self.claims.reconcile())
        return outcome

    def affinity(self, pod_uid: PodUid, container: str) -> TopologyHint:
        """The stored hint of a container (TM-50)."""
        return self._hints.get(pod_uid, container)

    async def explain(self, pod_uids: Iterable[PodUid]) -> dict[PodUid, pb.Explanation]:
        """How the last decisions on these pods were reached, as far as that is remembered.

        Only as many as one message holds; the others can be asked about again.
        """
        told: dict[PodUid, pb.Explanation] = {}
        room = MOST_EXPLAINED_BYTES
        for pod_uid in pod_uids:
            if room < 0:
                break
            way = self._decider.remembered.tell(pod_uid)
            if way is None:
                continue
            elsewhere = ""
            # What would have fitted can be told only while nothing has changed, and not at the
            # cost of who waits.
            if way.refused is not None and not self._turnstile.taken:
                async with self._turnstile.turn():
                    if self._records.revision == way.revision:
                        elsewhere = await self._elsewhere(way.refused)
            told[pod_uid] = await way.explaining.done(elsewhere)
            room -= told[pod_uid].ByteSize()
        return told

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

    def reconfigure(self, parts: DecidingParts) -> None:
        """Decide with these from now on. Called inside `reconfiguring`."""
        self._decider.parts = parts
        self._settlement.config_generation = parts.config_generation

    async def _group_for(self, call: AdmitCall, group: Group | None) -> Group | None:
        """The group that a pod can be decided in, a new one if there is none; None: by itself."""
        known = self._records.get(call.pod.uid) is not None
        if call.resize or known or self._strategies.keeps_leftovers:
            return None
        if group is not None:
            return None if call.pod.uid in group else group
        await self._registry.ready(self._introduce)
        handles = self._registry.handles
        if call.pod.uid in self._settlement.strays:
            return None
        if not all(handle.built_in and handle.takes_groups for handle in handles):
            return None
        return Group(
            self._next_id(), self._decider, self._records, self._hints, self._picture, handles
        )

    def _next_id(self) -> AdmissionId:
        return AdmissionId(f"{self._incarnation}-{next(self._numbers)}")

    async def _take_over(self, call: AdmitCall) -> ad.AdmitResponse:
        """Record a pod that providers hold and the record has lost, without judging it."""
        handles = self._registry.handles
        record = await self._settlement.take_over(call.pod, call.data, handles)
        self._decider.describe(record, call)
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

    async def _add(self, call: AdmitCall, waited: float) -> Decision:
        known = self._records.get(call.pod.uid)
        if known is not None and self._strategies.trusts_record:
            self._resizing.check_owner(known, call)
            pending = self._resizing.is_pending(known, call)
            return Decision(response=self._recorded(known, call, pending=pending), waited=waited)
        await self._registry.ready(self._introduce)
        if call.pod.uid in self._settlement.strays:
            response = await carried_through(self._take_over(call))
            return Decision(response=response, waited=waited)
        pending = False
        if known is not None:
            call, pending = self._resizing.shown_as_allocated(known, call)
        admission_id = self._next_id()
        with log_fields(admission_id=admission_id):
            judged = await self._decider.decide(call, admission_id)
        elsewhere = ""
        if judged.explaining is not None and judged.result and judged.result.refused_by_policy:
            elsewhere = await self._elsewhere(call)
        if known is not None and pending:
            judged.response.resize_pending = True
            judged.response.resources.CopyFrom(known.message.resources)
        return _decision(judged, admission_id, waited, elsewhere)

    async def _elsewhere(self, call: AdmitCall) -> str:
        """Whether another policy or the other scope would have taken a pod that was refused."""
        return await fits_elsewhere(self._decider, call, self._next_id)

    async def _resize(self, call: AdmitCall, waited: float) -> Decision:
        self._records.require(call.pod.uid)
        await self._registry.ready(self._introduce)
        known = self._records.require(call.pod.uid)
        if not self._resizing.wanted(known, call):
            response = self._recorded(known, call, pending=False)
            response.resources.CopyFrom(known.message.resources)
            return Decision(response=response, waited=waited)
        admission_id = self._next_id()
        with log_fields(admission_id=admission_id):
            judged = await self._resizing.decide(known, call, admission_id)
        return _decision(judged, admission_id, waited)

    def _recorded(self, known: Admitted, call: AdmitCall, *, pending: bool) -> ad.AdmitResponse:
        record = known.message
        response = ad.AdmitResponse(
            verdict=pb.VERDICT_ADMITTED,
            allocations=record.allocations,
            pod_allocation=record.pod_allocation,
            already_admitted=True,
            warnings=record.problems,
            revision=record.revision,
            dry_run=call.dry_run,
            resize_pending=pending,
        )
        if pending:
            response.resources.CopyFrom(record.resources)
        return response

    def _is_known(self, pod_uid: PodUid) -> bool:
        return pod_uid in self._settlement.strays or self._records.get(pod_uid) is not None

    def _require_known(self, pod_uid: PodUid) -> None:
        if not self._is_known(pod_uid):
            self._records.require(pod_uid)

    async def _release(self, pod_uids: tuple[PodUid, ...]) -> int:
        await self._records.release(pod_uids)
        for pod_uid in pod_uids:
            self._picture.gone(pod_uid)
            self._hints.drop_pod(pod_uid)
        request = hp.HintProviderReleaseRequest(pod_uids=pod_uids)
        await all_delivered(self._registry.handles)
        for handle in self._registry.handles:
            handle.deliver(bound(handle.stub.Release, request, handle.timeout))
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

    async def _introduce(self, handle: ProviderHandle) -> None:
        await self._settlement.introduce(handle, self._registry.handles)


def _decision(
    judged: Judged, admission_id: AdmissionId, waited: float, elsewhere: str = ""
) -> Decision:
    return Decision(
        response=judged.response,
        result=judged.result,
        admission_id=admission_id,
        waited=waited,
        explaining=judged.explaining,
        elsewhere=elsewhere,
    )


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
