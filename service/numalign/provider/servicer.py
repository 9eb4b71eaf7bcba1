"""The HintProvider service over a ledger: translate, call, translate back.

One servicer serves every built-in provider; what differs between them (their books as
messages) comes in as `Books`.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

from numalign.errors import Deferred, Fault, FieldViolation, InvalidInput, NotPrepared
from numalign.model.hint import ProviderHints, TopologyHint
from numalign.model.ids import AdmissionId, PodUid
from numalign.model.pod import Container, Pod
from numalign.provider.audience import Books, Observer
from numalign.provider.hint_messages import hint_from_message, hints_to_message
from numalign.provider.ledger import Ledger
from numalign.provider.messages import (
    call_to_message,
    deferral_to_message,
    edits_to_message,
    facts_to_messages,
    failure_to_message,
    holding_to_message,
    pod_holding_to_message,
)
from numalign.provider.pod_cache import PodCache
from numalign.provider.reconciliation import reconciled
from numalign.provider.subject import about
from numalign.rpc.context import Context
from numalign.telemetry.logs import get_logger
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import hint_provider_pb2_grpc as hp_grpc
from numalign.v1 import types_pb2 as pb

_log = get_logger("provider")

S = TypeVar("S")

PreStart = Callable[[S, Pod, Container], Awaitable[None]]
"""Makes ready what a container needs; see `DeviceEngine.pre_start`. Raises NotPrepared."""


class HintProviderServicer(hp_grpc.HintProviderServicer, Generic[S]):
    """Serves one ledger. The instance id is new with every servicer."""

    def __init__(
        self,
        ledger: Ledger[S],
        books: Books[S],
        observer: Observer[S],
        pods: PodCache,
        pre_start: PreStart[S] | None = None,
    ) -> None:
        self._ledger = ledger
        self._books = books
        self._observer = observer
        self._pods = pods
        self._pre_start = pre_start
        self._instance_id = uuid.uuid4().hex
        observer.started(ledger.state)

    def serve(self, books: Books[S], observer: Observer[S]) -> None:
        """Tell the books in another way from now on: the ledger decides by another engine."""
        self._observer.changed(self._ledger.state)
        self._books = books
        self._observer = observer
        observer.started(self._ledger.state)

    async def GetInfo(self, request: hp.GetInfoRequest, context: Context) -> hp.GetInfoResponse:
        """Who this is and what it serves."""
        return hp.GetInfoResponse(
            name=self._ledger.engine.name,
            resources=self._ledger.engine.resources(),
            instance_id=self._instance_id,
            pre_starts=self._pre_start is not None,
            takes_groups=True,
            call_stream=True,
        )

    async def GetTopologyHints(
        self, request: hp.GetTopologyHintsRequest, context: Context
    ) -> hp.GetTopologyHintsResponse:
        """Hints for one container."""
        pod = self._pods.decode(request.pod)
        container = _container(pod, request.container)
        admission_id = AdmissionId(request.admission_id)
        try:
            with self._about(admission_id, pod, container):
                hints, facts = await self._hints(
                    admission_id, pod, container, with_facts=request.with_facts
                )
        except Fault as fault:
            return hp.GetTopologyHintsResponse(instance_id=self._instance_id, fault=str(fault))
        except Deferred as deferred:
            return hp.GetTopologyHintsResponse(
                instance_id=self._instance_id, deferral=deferral_to_message(deferred)
            )
        return hp.GetTopologyHintsResponse(
            instance_id=self._instance_id, hints=hints_to_message(hints), facts=facts
        )

    async def GetPodTopologyHints(
        self, request: hp.GetPodTopologyHintsRequest, context: Context
    ) -> hp.GetPodTopologyHintsResponse:
        """Hints for a pod as a whole."""
        pod = self._pods.decode(request.pod)
        admission_id = AdmissionId(request.admission_id)
        try:
            with self._about(admission_id, pod, None):
                hints, facts = await self._hints(
                    admission_id, pod, None, with_facts=request.with_facts
                )
        except Fault as fault:
            return hp.GetPodTopologyHintsResponse(instance_id=self._instance_id, fault=str(fault))
        except Deferred as deferred:
            return hp.GetPodTopologyHintsResponse(
                instance_id=self._instance_id, deferral=deferral_to_message(deferred)
            )
        return hp.GetPodTopologyHintsResponse(
            instance_id=self._instance_id, hints=hints_to_message(hints), facts=facts
        )

    async def Allocate(self, request: hp.AllocateRequest, context: Context) -> hp.AllocateResponse:
        """Takes what one container asks for."""
        pod = self._pods.decode(request.pod)
        container = _container(pod, request.container)
        admission_id = AdmissionId(request.admission_id)
        affinity = hint_from_message(request.affinity)
        before = self._ledger.basis(admission_id)
        try:
            with self._about(admission_id, pod, container, affinity):
                outcome = await self._ledger.allocate(
                    admission_id,
                    pod,
                    container,
                    affinity,
                    last=request.last,
                    dry_run=request.dry_run,
                    seal_later=request.seal_later,
                    group=request.group,
                )
        except Fault as fault:
            return hp.AllocateResponse(
                instance_id=self._instance_id, failure=hp.AllocationFailure(fault=str(fault))
            )
        except Deferred as deferred:
            return hp.AllocateResponse(
                instance_id=self._instance_id,
                failure=hp.AllocationFailure(deferral=deferral_to_message(deferred)),
            )
        if not request.dry_run:
            self._observer.allocated(before, outcome, pod, container)
        return hp.AllocateResponse(
            instance_id=self._instance_id,
            failure=failure_to_message(outcome.failure),
            allocations=()
            if request.allocations_when_last and not request.last
            else self._holdings(outcome.state, pod.uid),
            plugin_calls=[call_to_message(call) for call in outcome.plugin_calls],
            unsealed=outcome.unsealed,
        )

    async def AllocatePod(
        self, request: hp.AllocatePodRequest, context: Context
    ) -> hp.AllocatePodResponse:
        """Takes what a pod with pod-level resources asks for."""
        pod = self._pods.decode(request.pod)
        admission_id = AdmissionId(request.admission_id)
        affinity = hint_from_message(request.affinity)
        before = self._ledger.basis(admission_id)
        try:
            with self._about(admission_id, pod, None, affinity):
                outcome = await self._ledger.allocate(
                    admission_id,
                    pod,
                    None,
                    affinity,
                    last=request.last,
                    dry_run=request.dry_run,
                    seal_later=request.seal_later,
                    group=request.group,
                )
        except Fault as fault:
            return hp.AllocatePodResponse(
                instance_id=self._instance_id, failure=hp.AllocationFailure(fault=str(fault))
            )
        except Deferred as deferred:
            return hp.AllocatePodResponse(
                instance_id=self._instance_id,
                failure=hp.AllocationFailure(deferral=deferral_to_message(deferred)),
            )
        if not request.dry_run:
            self._observer.allocated(before, outcome, pod, None)
        holding = self._ledger.engine.pod_holding(outcome.state, pod.uid)
        return hp.AllocatePodResponse(
            instance_id=self._instance_id,
            failure=failure_to_message(outcome.failure),
            allocations=self._holdings(outcome.state, pod.uid),
            pod_allocation=pod_holding_to_message(holding),
            plugin_calls=[call_to_message(call) for call in outcome.plugin_calls],
            unsealed=outcome.unsealed,
        )

    async def Seal(self, request: hp.SealRequest, context: Context) -> hp.SealResponse:
        """Does what cannot be undone."""
        pod = self._pods.decode(request.pod)
        admission_id = AdmissionId(request.admission_id)
        with self._about(admission_id, pod, None):
            outcome = await self._ledger.seal(admission_id, pod, group=request.group)
        return hp.SealResponse(
            instance_id=self._instance_id,
            failure=failure_to_message(outcome.failure),
            allocations=self._holdings(outcome.state, pod.uid),
            plugin_calls=[call_to_message(call) for call in outcome.plugin_calls],
        )

    async def Prepare(self, request: hp.PrepareRequest, context: Context) -> hp.PrepareResponse:
        """Makes the part of a group durable."""
        await self._ledger.prepare(AdmissionId(request.admission_id))
        return hp.PrepareResponse(instance_id=self._instance_id)

    async def Commit(self, request: hp.CommitRequest, context: Context) -> hp.CommitResponse:
        """The admission is recorded."""
        await self._ledger.commit(AdmissionId(request.admission_id))
        self._observer.changed(self._ledger.state)
        return hp.CommitResponse(instance_id=self._instance_id)

    async def Abort(self, request: hp.AbortRequest, context: Context) -> hp.AbortResponse:
        """The admission is off, or one pod of a group."""
        if request.pod_only:
            await self._ledger.leave(AdmissionId(request.admission_id), PodUid(request.pod_uid))
            return hp.AbortResponse(instance_id=self._instance_id)
        keep = request.leftovers == hp.LEFTOVERS_KEEP
        await self._ledger.abort(
            AdmissionId(request.admission_id),
            keep=keep,
            pod_uid=PodUid(request.pod_uid) if request.pod_uid else None,
        )
        self._observer.changed(self._ledger.state)
        return hp.AbortResponse(instance_id=self._instance_id)

    async def PreStartContainer(
        self, request: hp.HintProviderPreStartContainerRequest, context: Context
    ) -> hp.HintProviderPreStartContainerResponse:
        """Makes ready what a container needs; the books do not change."""
        pod = self._pods.decode(request.pod)
        container = _container(pod, request.container)
        response = hp.HintProviderPreStartContainerResponse(instance_id=self._instance_id)
        if self._pre_start is not None:
            try:
                with self._about(None, pod, container):
                    await self._pre_start(self._ledger.state, pod, container)
            except NotPrepared as refused:
                response.failure.message = str(refused)
        return response

    async def PrepareContainer(
        self, request: hp.HintProviderPrepareContainerRequest, context: Context
    ) -> hp.HintProviderPrepareContainerResponse:
        """Says what is to be applied to a container."""
        pod = self._pods.decode(request.pod)
        container = _container(pod, request.container)
        try:
            with self._about(None, pod, container):
                preparation = await self._ledger.prepare_container(
                    pod, container, hint_from_message(request.affinity)
                )
        except NotPrepared as refused:
            return hp.HintProviderPrepareContainerResponse(
                instance_id=self._instance_id,
                failure=hp.AllocationFailure(message=str(refused)),
            )
        for conflict in preparation.conflicts:
            _log.warning(
                "device plugins disagree", pod_uid=pod.uid, container=container.name, why=conflict
            )
        holding = next(
            (
                h
                for h in self._ledger.engine.holdings(self._ledger.state, pod.uid)
                if h.container == container.name
            ),
            None,
        )
        mems = preparation.mems
        edits = preparation.edits
        return hp.HintProviderPrepareContainerResponse(
            instance_id=self._instance_id,
            cpus=None if preparation.cpus is None else str(preparation.cpus),
            exclusive_cpus=holding is not None and bool(holding.cpus),
            mems=None if mems is None else ",".join(map(str, mems)),
            edits=None if edits is None else edits_to_message(edits),
            allocation=None if holding is None else holding_to_message(holding),
            newly_allocated=preparation.newly_allocated,
            unready=preparation.unready,
        )

    async def AddContainer(
        self, request: hp.HintProviderAddContainerRequest, context: Context
    ) -> hp.HintProviderAddContainerResponse:
        """A container is about to start."""
        pod = self._pods.decode(request.pod)
        container = _container(pod, request.container)
        with self._about(None, pod, container):
            await self._ledger.add_container(pod, container)
        self._observer.changed(self._ledger.state)
        return hp.HintProviderAddContainerResponse(
            instance_id=self._instance_id,
            allocations=self._holdings(self._ledger.state, pod.uid),
        )

    async def RemoveContainer(
        self, request: hp.HintProviderRemoveContainerRequest, context: Context
    ) -> hp.HintProviderRemoveContainerResponse:
        """A container is gone for good: what it holds is given back."""
        await self._ledger.remove_container(PodUid(request.pod_uid), request.container)
        self._observer.changed(self._ledger.state)
        return hp.HintProviderRemoveContainerResponse(instance_id=self._instance_id)

    async def Release(
        self, request: hp.HintProviderReleaseRequest, context: Context
    ) -> hp.HintProviderReleaseResponse:
        """Pods ended."""
        await self._ledger.release(PodUid(uid) for uid in request.pod_uids)
        self._observer.changed(self._ledger.state)
        return hp.HintProviderReleaseResponse(instance_id=self._instance_id)

    async def Reconcile(
        self, request: hp.HintProviderReconcileRequest, context: Context
    ) -> hp.HintProviderReconcileResponse:
        """The Topology Manager's picture."""
        response = await reconciled(self._ledger, self._pods, request)
        self._observer.changed(self._ledger.state)
        response.instance_id = self._instance_id
        return response

    async def GetState(self, request: hp.GetStateRequest, context: Context) -> hp.GetStateResponse:
        """The provider's books."""
        response = self._books.state_message(self._ledger.state)
        response.instance_id = self._instance_id
        response.revision = self._ledger.revision
        response.reports.extend(self._ledger.reports)
        return response

    async def GetAllocatableResources(
        self, request: hp.GetAllocatableResourcesRequest, context: Context
    ) -> hp.GetAllocatableResourcesResponse:
        """What can be given out at all."""
        response = self._books.allocatable_message(self._ledger.state)
        response.instance_id = self._instance_id
        return response

    async def Watch(
        self, request: hp.WatchRequest, context: Context
    ) -> AsyncIterator[hp.WatchResponse]:
        """Streams what others need to know, beginning with how it stands.

        What an admission prepared is told when its outcome is known: before that it may be
        taken back, and whoever makes the decision has no time to listen.
        """
        while True:
            revision = self._ledger.revision
            shared = unhealthy = None
            if self._ledger.settled:
                shared = self._ledger.engine.shared_cpus(self._ledger.state)
                unhealthy = self._books.unhealthy_message(self._ledger.state)
            yield hp.WatchResponse(
                instance_id=self._instance_id,
                revision=revision,
                resources=self._ledger.engine.resources(),
                shared_cpus=None if shared is None else str(shared),
                fitted=self._ledger.fitted,
                unhealthy_devices=unhealthy,
            )
            await self._ledger.wait_settled(revision)

    def _about(
        self,
        admission_id: AdmissionId | None,
        pod: Pod,
        container: Container | None,
        affinity: TopologyHint | None = None,
    ) -> AbstractContextManager[None]:
        return about(self._ledger.engine.name, admission_id, pod, container, affinity)

    def _holdings(self, state: S, pod_uid: PodUid) -> list[pb.ContainerAllocation]:
        return [holding_to_message(h) for h in self._ledger.engine.holdings(state, pod_uid)]

    async def _hints(
        self, admission_id: AdmissionId, pod: Pod, container: Container | None, *, with_facts: bool
    ) -> tuple[ProviderHints, list[pb.ResourceFacts]]:
        if not with_facts:
            return await self._ledger.hints(admission_id, pod, container), []
        hints, facts = await self._ledger.look(admission_id, pod, container)
        return hints, facts_to_messages(self._ledger.engine.name, facts)


def _container(pod: Pod, name: str) -> Container:
    try:
        return pod.container(name)
    except KeyError:
        raise InvalidInput(
            FieldViolation("container", f'pod "{pod.uid}" has no container "{name}"')
        ) from None
