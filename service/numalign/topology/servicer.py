"""The TopologyManager service: translate, call, translate back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from numalign.errors import FieldViolation, InvalidInput, NumalignError
from numalign.kube.violations import invalid, too_long
from numalign.model.ids import PodUid
from numalign.provider.hint_messages import hint_to_message
from numalign.provider.pod_cache import PodCache
from numalign.rpc.context import Context
from numalign.rpc.enums import refuse_unknown
from numalign.telemetry import attributes
from numalign.telemetry.logs import log_fields
from numalign.telemetry.tracing import active_tracer
from numalign.topology.decision import AdmitCall, Decision
from numalign.topology.manager import TopologyManager
from numalign.topology.node_resources.collector import NodeResourcesCollector
from numalign.topology.pod_stream import AskedPod
from numalign.topology.provider_handle import ProviderHandle
from numalign.topology.records import Records
from numalign.topology.registrations import Registrations
from numalign.topology.registry import ProviderRegistry
from numalign.topology.told_pods import ToldPods
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import topology_pb2_grpc as tm_grpc
from numalign.v1 import types_pb2 as pb

MAX_OWNER = 253
"""The longest owner, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFacts:
    """What GetPolicy answers."""

    policy: str
    scope: str
    options: Mapping[str, str]
    numa_nodes: tuple[int, ...]
    compatibility: str
    config_generation: int


class AdmissionObserver:
    """Hears what becomes of pods; the default hears nothing."""

    def asked(self, call: AdmitCall) -> None:
        """An Admit begins, in the span and the log fields of its call."""

    def decided(self, call: AdmitCall, decision: Decision, seconds: float) -> None:
        """An Admit came to a decision, `seconds` after it was asked for."""

    def released(self, pod_uid: PodUid, seconds: float) -> None:
        """A pod gave back what it held."""

    def reconciled(self, owner: str, outcome: ad.ReconcileResponse, seconds: float) -> None:
        """The picture of one owner was taken over."""


class TopologyManagerServicer(tm_grpc.TopologyManagerServicer):
    """Serves one manager."""

    def __init__(
        self,
        *,
        manager: TopologyManager,
        records: Records,
        registry: ProviderRegistry,
        facts: PolicyFacts,
        registrations: Registrations,
        observer: AdmissionObserver,
        pods: PodCache,
        default_owner: str,
        resources: NodeResourcesCollector,
    ) -> None:
        self._manager = manager
        self._records = records
        self._registry = registry
        self._facts = facts
        self._registrations = registrations
        self._observer = observer
        self._pods = pods
        self._default_owner = default_owner
        self._resources = resources

    def reconfigure(
        self, facts: PolicyFacts, observer: AdmissionObserver, resources: NodeResourcesCollector
    ) -> None:
        """Tell these, and of decisions to this observer, from now on."""
        self._facts = facts
        self._observer = observer
        self._resources = resources

    async def Admit(
        self, request: tm.TopologyManagerAdmitRequest, context: Context
    ) -> tm.TopologyManagerAdmitResponse:
        """Decides on one pod."""
        call = self._call(request)
        clock = asyncio.get_running_loop().time
        started = clock()
        with log_fields(pod=f"{call.pod.namespace}/{call.pod.name}", pod_uid=call.pod.uid):
            self._observer.asked(call)
            decision = await self._manager.admit(call)
            self._observer.decided(call, decision, clock() - started)
        return tm.TopologyManagerAdmitResponse(decision=decision.response)

    async def AdmitPods(
        self, request_iterator: AsyncIterator[tm.TopologyManagerAdmitPodsRequest], context: Context
    ) -> AsyncIterator[tm.TopologyManagerAdmitPodsResponse]:
        """Decides on pods in the order sent."""
        told = ToldPods(self._observer)
        async with aclosing(
            self._manager.admit_pods().decide(self._asked(request_iterator))
        ) as events:
            async for event in events:
                yield told.message(event)

    async def _asked(
        self, requests: AsyncIterator[tm.TopologyManagerAdmitPodsRequest]
    ) -> AsyncIterator[AskedPod]:
        async for request in requests:
            try:
                yield AskedPod(self._call(request.admit), more=request.more)
            except NumalignError as error:
                yield AskedPod(error, more=request.more)

    def _call(self, request: tm.TopologyManagerAdmitRequest) -> AdmitCall:
        refuse_unknown("operation", request.operation, pb.Operation)
        refuse_unknown("explain", request.explain, pb.ExplainLevel)
        return AdmitCall(
            data=request.pod,
            pod=self._pods.decode(request.pod),
            owner=_owner(request.owner) or self._default_owner,
            dry_run=request.dry_run,
            explain=request.explain,
            resize=request.operation == pb.OPERATION_RESIZE,
            claims=tuple(request.claims),
            remember=request.remember,
        )

    async def Release(
        self, request: tm.TopologyManagerReleaseRequest, context: Context
    ) -> tm.TopologyManagerReleaseResponse:
        """Gives back everything that a pod holds."""
        pod_uid = PodUid(_given("pod_uid", request.pod_uid))
        clock = asyncio.get_running_loop().time
        started = clock()
        _annotate(pod_uid)
        with log_fields(pod_uid=pod_uid):
            revision = await self._manager.release(pod_uid)
            self._observer.released(pod_uid, clock() - started)
        return tm.TopologyManagerReleaseResponse(revision=revision)

    async def Reconcile(
        self, request: tm.TopologyManagerReconcileRequest, context: Context
    ) -> tm.TopologyManagerReconcileResponse:
        """Releases the pods of one owner that the owner no longer has."""
        picture = ad.ReconcileRequest()
        picture.CopyFrom(request.picture)
        picture.owner = _owner(picture.owner) or self._default_owner
        clock = asyncio.get_running_loop().time
        started = clock()
        outcome = await self._manager.reconcile(picture)
        self._observer.reconciled(picture.owner, outcome, clock() - started)
        return tm.TopologyManagerReconcileResponse(outcome=outcome)

    async def GetAffinity(
        self, request: tm.GetAffinityRequest, context: Context
    ) -> tm.GetAffinityResponse:
        """The hint stored for a container."""
        hint = self._manager.affinity(PodUid(request.pod_uid), request.container_name)
        return tm.GetAffinityResponse(affinity=hint_to_message(hint))

    async def GetPolicy(
        self, request: tm.GetPolicyRequest, context: Context
    ) -> tm.GetPolicyResponse:
        """The policy, scope and options in force."""
        return tm.GetPolicyResponse(
            policy=self._facts.policy,
            scope=self._facts.scope,
            options=self._facts.options,
            numa_nodes=self._facts.numa_nodes,
            compatibility=self._facts.compatibility,
            config_generation=self._facts.config_generation,
        )

    async def PreparePod(
        self, request: tm.TopologyManagerPreparePodRequest, context: Context
    ) -> tm.TopologyManagerPreparePodResponse:
        """Has the resource claims of an admitted pod prepared."""
        if not request.pod:
            raise InvalidInput(FieldViolation("pod", "Required value"))
        preparation = await self._manager.claims.prepare(request.pod, request.claims)
        return tm.TopologyManagerPreparePodResponse(preparation=preparation)

    async def PrepareContainer(
        self, request: tm.TopologyManagerPrepareContainerRequest, context: Context
    ) -> tm.TopologyManagerPrepareContainerResponse:
        """Collects from the providers what is to be applied to a container."""
        pod_uid = PodUid(_given("pod_uid", request.pod_uid))
        container = _given("container_name", request.container_name)
        _annotate(pod_uid, container)
        with log_fields(pod_uid=pod_uid, container=container):
            preparation = await self._manager.containers.prepare(pod_uid, container)
        return tm.TopologyManagerPrepareContainerResponse(preparation=preparation)

    async def AddContainer(
        self, request: tm.TopologyManagerAddContainerRequest, context: Context
    ) -> tm.TopologyManagerAddContainerResponse:
        """A container is about to start."""
        pod_uid = PodUid(_given("pod_uid", request.pod_uid))
        container = _given("container_name", request.container_name)
        container_id = _given("container_id", request.container_id)
        _annotate(pod_uid, container)
        with log_fields(pod_uid=pod_uid, container=container):
            await self._manager.containers.add(pod_uid, container, container_id)
        return tm.TopologyManagerAddContainerResponse()

    async def RemoveContainer(
        self, request: tm.TopologyManagerRemoveContainerRequest, context: Context
    ) -> tm.TopologyManagerRemoveContainerResponse:
        """A container is gone."""
        await self._manager.containers.remove(_given("container_id", request.container_id))
        return tm.TopologyManagerRemoveContainerResponse()

    async def WatchAdmissions(
        self, request: tm.WatchAdmissionsRequest, context: Context
    ) -> AsyncIterator[tm.WatchAdmissionsResponse]:
        """Streams the record of admitted pods."""
        async for event in self._records.watch(request.from_revision):
            yield tm.WatchAdmissionsResponse(
                event=event, pod=self._pod_of(event) if request.with_pods else b""
            )

    def _pod_of(self, event: ad.WatchAssignmentsResponse) -> bytes:
        """The pod that an event is about, unless it is gone again."""
        uid = event.existing.pod_uid or event.changed.pod_uid
        admitted = self._records.get(PodUid(uid)) if uid else None
        return b"" if admitted is None else admitted.pod

    async def ListHintProviders(
        self, request: tm.ListHintProvidersRequest, context: Context
    ) -> tm.ListHintProvidersResponse:
        """Lists the hint providers in the order in which they are asked."""
        return tm.ListHintProvidersResponse(
            providers=[_status(handle) for handle in self._registry.handles]
        )

    async def RegisterHintProvider(
        self, request: tm.RegisterHintProviderRequest, context: Context
    ) -> tm.RegisterHintProviderResponse:
        """Adds a third-party hint provider."""
        _given("name", request.name)
        _given("endpoint", request.endpoint)
        if request.failure_policy not in pb.FailurePolicy.values():
            raise InvalidInput(
                FieldViolation("failure_policy", f"unknown policy {request.failure_policy}")
            )
        handle = await self._registrations.register(request)
        return tm.RegisterHintProviderResponse(provider=_status(handle))

    async def DeregisterHintProvider(
        self, request: tm.DeregisterHintProviderRequest, context: Context
    ) -> tm.DeregisterHintProviderResponse:
        """Asks a third-party hint provider no more."""
        await self._registrations.deregister(_given("name", request.name))
        return tm.DeregisterHintProviderResponse()

    async def GetAllocatable(
        self, request: tm.GetAllocatableRequest, context: Context
    ) -> tm.GetAllocatableResponse:
        """What the built-in providers can give out at all."""
        return await self._resources.allocatable()

    async def GetNodeResources(
        self, request: tm.TopologyManagerGetNodeResourcesRequest, context: Context
    ) -> tm.TopologyManagerGetNodeResourcesResponse:
        """What the node has, and what of it is free."""
        return tm.TopologyManagerGetNodeResourcesResponse(resources=await self._resources.read())

    async def WatchNodeResources(
        self, request: tm.TopologyManagerWatchNodeResourcesRequest, context: Context
    ) -> AsyncIterator[tm.TopologyManagerWatchNodeResourcesResponse]:
        """Streams the same at every change."""
        async for resources in self._resources.watch():
            yield tm.TopologyManagerWatchNodeResourcesResponse(resources=resources)

    async def ExplainAdmissions(
        self, request: tm.ExplainAdmissionsRequest, context: Context
    ) -> tm.ExplainAdmissionsResponse:
        """Explains how pods were decided on, after the fact."""
        told = await self._manager.explain(map(PodUid, request.pod_uids))
        return tm.ExplainAdmissionsResponse(
            admissions=[
                tm.ExplainedAdmission(pod_uid=uid, explanation=explanation)
                for uid, explanation in told.items()
            ]
        )

    async def ListDevices(
        self, request: tm.ListDevicesRequest, context: Context
    ) -> tm.ListDevicesResponse:
        """Every device that there is."""
        return await self._resources.devices()


def _annotate(pod_uid: str, container: str = "") -> None:
    """Say on the span of the call what it is about."""
    tracer = active_tracer()
    if tracer is not None:
        tracer.annotate(attributes.container_attributes(pod_uid, container))


def _given(field: str, value: str) -> str:
    if not value:
        raise InvalidInput(FieldViolation(field, "Required value"))
    return value


def _status(handle: ProviderHandle) -> tm.HintProviderStatus:
    status = tm.HintProviderStatus(
        name=handle.name,
        endpoint=handle.endpoint,
        resources=handle.resources,
        instance_id=handle.instance_id,
        failure_policy=handle.failure_policy,
        built_in=handle.built_in,
        last_error=handle.last_error,
    )
    status.timeout.FromMilliseconds(round(handle.timeout * 1000))
    return status


def _owner(text: str) -> str:
    """The owner as sent. Raises InvalidInput for what no list could show."""
    if len(text) > MAX_OWNER:
        raise InvalidInput(too_long("owner", MAX_OWNER))
    if not text.isprintable():
        raise InvalidInput(invalid("owner", text, "must consist of printable characters"))
    return text
