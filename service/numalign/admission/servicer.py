"""The Admission service: the one door for node agents.

It hands pods to the Topology Manager byte for byte and decides nothing by itself: who is admitted
is recorded there, and a restart of this service loses nothing. What it answered is noted in a
journal, on which nothing depends.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

from google.protobuf.message import DecodeError
from grpc import StatusCode, aio

from numalign.admission.admit_chain import AdmitChain
from numalign.admission.journal.entry import is_decision, record_of
from numalign.admission.journal.journal import Journal
from numalign.admission.node_file import KnownNode
from numalign.admission.observer import AnswerObserver
from numalign.errors import (
    FieldViolation,
    InvalidInput,
    NodeUnknown,
    NotKept,
    NumalignError,
    Unavailable,
)
from numalign.rpc.context import Context
from numalign.rpc.enums import refuse_unknown
from numalign.rpc.status import status_of
from numalign.rpc.wire import field_bytes
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import topology_pb2_grpc as tm_grpc
from numalign.v1 import types_pb2 as pb

T = TypeVar("T")

_ADDITIONS = (pb.OPERATION_UNSPECIFIED, pb.OPERATION_ADD)
_POD_FIELD = ad.AdmitRequest.POD_FIELD_NUMBER


@dataclass(frozen=True, slots=True)
class ReceivedAdmit:
    """An Admit call as it came in: the message, and the pod's own bytes.

    `readable` is False for bytes that are no AdmitRequest: they are refused when the call is
    answered, where a refusal can say what is wrong.
    """

    request: ad.AdmitRequest
    pod: bytes
    readable: bool = True

    @classmethod
    def from_wire(cls, data: bytes) -> ReceivedAdmit:
        """Parse a serialised AdmitRequest."""
        try:
            request = ad.AdmitRequest.FromString(data)
        except DecodeError:
            return cls(ad.AdmitRequest(), b"", readable=False)
        return cls(request, field_bytes(data, _POD_FIELD) or b"")

    @classmethod
    def from_message(cls, request: ad.AdmitRequest) -> ReceivedAdmit:
        """Take a request that never was on a wire."""
        return cls(request, request.pod.SerializeToString(deterministic=True))


class AdmissionServicer(ad_grpc.AdmissionServicer):
    """Serves agents over one Topology Manager."""

    def __init__(
        self,
        topology: tm_grpc.TopologyManagerAsyncStub,
        default_owner: str,
        observer: AnswerObserver,
        answered: Callable[[int], None],
        chain: AdmitChain,
        journal: Journal | None,
    ) -> None:
        """Make it. `answered` hears the revision of every answer that changed something.

        `chain` judges pods once it knows the Node object, or others have handlers in it.
        `journal` is where decisions are noted; None: nowhere.
        """
        self._topology = topology
        self._default_owner = default_owner
        self._observer = observer
        self._answered = answered
        self._chain = chain
        self._journal = journal

    async def Admit(
        self, request: ad.AdmitRequest | ReceivedAdmit, context: Context
    ) -> ad.AdmitResponse:
        """Decides on one pod."""
        if isinstance(request, ad.AdmitRequest):
            request = ReceivedAdmit.from_message(request)
        return await self._admit(request, context)

    async def AdmitPods(
        self, request_iterator: AsyncIterator[ad.AdmitPodsRequest], context: Context
    ) -> AsyncIterator[ad.AdmitPodsResponse]:
        """Decides on many pods in the order sent."""
        async for item in request_iterator:
            received = ReceivedAdmit.from_message(item.admit)
            response = ad.AdmitPodsResponse(pod_uid=item.admit.pod.metadata.uid)
            try:
                response.decision.CopyFrom(await self._admit(received, context))
            except (NumalignError, aio.AioRpcError) as error:
                code, message = status_of(error)
                response.error.code = code.value[0]
                response.error.message = message
            yield response

    async def Release(self, request: ad.ReleaseRequest, context: Context) -> ad.ReleaseResponse:
        """Gives back everything that a pod holds."""
        response = await self._call(
            self._topology.Release(
                tm.TopologyManagerReleaseRequest(pod_uid=request.pod_uid),
                timeout=context.time_remaining(),
            )
        )
        self._answered(response.revision)
        return ad.ReleaseResponse(revision=response.revision)

    async def Reconcile(
        self, request: ad.ReconcileRequest, context: Context
    ) -> ad.ReconcileResponse:
        """Releases the pods of one owner that the owner no longer has."""
        picture = ad.ReconcileRequest()
        picture.CopyFrom(request)
        picture.owner = picture.owner or self._default_owner
        response = await self._call(
            self._topology.Reconcile(
                tm.TopologyManagerReconcileRequest(picture=picture),
                timeout=context.time_remaining(),
            )
        )
        self._answered(response.outcome.revision)
        return response.outcome

    async def PreparePod(
        self, request: ad.PreparePodRequest, context: Context
    ) -> ad.PreparePodResponse:
        """Has the resource claims of an admitted pod prepared by their drivers."""
        response = await self._call(
            self._topology.PreparePod(
                tm.TopologyManagerPreparePodRequest(
                    pod=request.pod.SerializeToString(deterministic=True), claims=request.claims
                ),
                timeout=context.time_remaining(),
            )
        )
        self._answered(response.preparation.revision)
        return response.preparation

    async def PrepareContainer(
        self, request: ad.PrepareContainerRequest, context: Context
    ) -> ad.PrepareContainerResponse:
        """Says everything that is to be applied to a container before it starts."""
        response = await self._call(
            self._topology.PrepareContainer(
                tm.TopologyManagerPrepareContainerRequest(
                    pod_uid=request.pod_uid, container_name=request.container_name
                ),
                timeout=context.time_remaining(),
            )
        )
        return response.preparation

    async def AddContainer(
        self, request: ad.AddContainerRequest, context: Context
    ) -> ad.AddContainerResponse:
        """A container is about to start."""
        await self._call(
            self._topology.AddContainer(
                tm.TopologyManagerAddContainerRequest(
                    pod_uid=request.pod_uid,
                    container_name=request.container_name,
                    container_id=request.container_id,
                ),
                timeout=context.time_remaining(),
            )
        )
        return ad.AddContainerResponse()

    async def RemoveContainer(
        self, request: ad.RemoveContainerRequest, context: Context
    ) -> ad.RemoveContainerResponse:
        """A container is gone from the runtime."""
        await self._call(
            self._topology.RemoveContainer(
                tm.TopologyManagerRemoveContainerRequest(container_id=request.container_id),
                timeout=context.time_remaining(),
            )
        )
        return ad.RemoveContainerResponse()

    async def ListAdmissions(
        self, request: ad.ListAdmissionsRequest, context: Context
    ) -> ad.ListAdmissionsResponse:
        """Lists the pods that are admitted."""
        response = ad.ListAdmissionsResponse()
        listed: set[str] = set()
        async with aclosing(self._watch(0, context)) as events:
            async for event in events:
                response.revision = event.revision
                kind = event.WhichOneof("event")
                if kind == "existing" and request.owner in {"", event.existing.owner}:
                    response.admissions.append(event.existing)
                    listed.add(event.existing.pod_uid)
                elif kind == "shared_cpus":
                    response.shared_cpus = event.shared_cpus.cpus
                elif kind == "unhealthy_devices":
                    response.unhealthy_devices.extend(
                        d for d in event.unhealthy_devices.devices if d.pod_uid in listed
                    )
                elif kind == "synced":
                    return response
        raise Unavailable("topology manager: the list of admissions ended half-way")

    async def WatchAssignments(
        self, request: ad.WatchAssignmentsRequest, context: Context
    ) -> AsyncIterator[ad.WatchAssignmentsResponse]:
        """Streams what is admitted now, a marker, then every change."""
        async for event in self._watch(request.from_revision, context):
            yield event

    async def GetNodeResources(
        self, request: ad.GetNodeResourcesRequest, context: Context
    ) -> ad.GetNodeResourcesResponse:
        """Says what the node has, and what of it is free."""
        response = await self._call(
            self._topology.GetNodeResources(
                tm.TopologyManagerGetNodeResourcesRequest(), timeout=context.time_remaining()
            )
        )
        return ad.GetNodeResourcesResponse(resources=response.resources)

    async def WatchNodeResources(
        self, request: ad.WatchNodeResourcesRequest, context: Context
    ) -> AsyncIterator[ad.WatchNodeResourcesResponse]:
        """Streams the same at every change."""
        stream = self._topology.WatchNodeResources(
            tm.TopologyManagerWatchNodeResourcesRequest(), timeout=context.time_remaining()
        )
        try:
            async for response in stream:
                yield ad.WatchNodeResourcesResponse(resources=response.resources)
        except aio.AioRpcError as error:
            raise _named(error) from error
        finally:
            stream.cancel()

    async def SetNode(self, request: ad.SetNodeRequest, context: Context) -> ad.SetNodeResponse:
        """Tells what the Node object says now."""
        if not request.node.metadata.name:
            raise InvalidInput(FieldViolation("node.metadata.name", "Required value"))
        self._chain.node.set_node(KnownNode.of(request.node))
        self._chain.start()
        return ad.SetNodeResponse()

    async def SetNodeState(
        self, request: ad.SetNodeStateRequest, context: Context
    ) -> ad.SetNodeStateResponse:
        """Tells in what state the node is."""
        self._chain.node.set_shutting_down(request.shutting_down)
        return ad.SetNodeStateResponse()

    async def ListDecisions(
        self, request: dc.ListDecisionsRequest, context: Context
    ) -> dc.ListDecisionsResponse:
        """Lists what was decided of late."""
        return await self._kept_journal().list(request)

    async def GetDecision(
        self, request: dc.GetDecisionRequest, context: Context
    ) -> dc.GetDecisionResponse:
        """One decision with its explanation."""
        if not request.pod and not request.number:
            raise InvalidInput(FieldViolation("pod", "Required value, or a number"))
        return dc.GetDecisionResponse(decision=await self._kept_journal().get(request))

    def _kept_journal(self) -> Journal:
        if self._journal is None:
            raise NotKept("no journal of decisions is kept here (numalign.journal.size is 0)")
        return self._journal

    async def _admit(self, received: ReceivedAdmit, context: Context) -> ad.AdmitResponse:
        if not received.readable:
            raise InvalidInput(
                FieldViolation("pod", "Invalid value: the bytes are not those of an AdmitRequest")
            )
        if not received.pod:
            raise InvalidInput(FieldViolation("pod", "Required value"))
        request = received.request
        refuse_unknown("operation", request.operation, pb.Operation)
        refuse_unknown("explain", request.explain, pb.ExplainLevel)
        if request.needs_node and not self._chain.node.is_known:
            raise NodeUnknown("node: no Node object is known; set it by SetNode and ask again")
        self._observer.asked(request)
        started = time.perf_counter()

        async def ask(dry_run: bool) -> ad.AdmitResponse:
            return await self._ask_topology(received, dry_run, context)

        if request.operation == pb.OPERATION_RESIZE:
            decision = await self._chain.resize(request, received.pod, ask)
        elif self._chain.is_active and request.operation in _ADDITIONS:
            decision = await self._chain.admit(request, received.pod, ask)
        else:
            decision = await ask(request.dry_run)
        self._observer.answered(request, decision)
        self._answered(decision.revision)
        if self._journal is not None and is_decision(request, decision):
            seconds = time.perf_counter() - started
            owner = request.owner or self._default_owner
            self._journal.note(record_of(request, decision, owner, seconds, time.time_ns()))
        return decision

    async def _ask_topology(
        self, received: ReceivedAdmit, dry_run: bool, context: Context
    ) -> ad.AdmitResponse:
        request = received.request
        response = await self._call(
            self._topology.Admit(
                tm.TopologyManagerAdmitRequest(
                    pod=received.pod,
                    operation=request.operation,
                    owner=request.owner or self._default_owner,
                    dry_run=dry_run,
                    explain=request.explain,
                    remember=self._journal is not None and not request.dry_run,
                    claims=request.claims,
                ),
                timeout=context.time_remaining(),
            )
        )
        return response.decision

    async def _watch(
        self, from_revision: int, context: Context
    ) -> AsyncGenerator[ad.WatchAssignmentsResponse, None]:
        stream = self._topology.WatchAdmissions(
            tm.WatchAdmissionsRequest(from_revision=from_revision),
            timeout=context.time_remaining(),
        )
        try:
            async for response in stream:
                yield response.event
        except aio.AioRpcError as error:
            raise _named(error) from error
        finally:
            stream.cancel()

    async def _call(self, call: Awaitable[T]) -> T:
        try:
            return await call
        except aio.AioRpcError as error:
            raise _named(error) from error


def _is_named(details: str) -> bool:
    """Whether the Topology Manager has said who else cannot be reached."""
    return "hint provider" in details or "dynamic resources" in details


def _named(error: aio.AioRpcError) -> Exception:
    """The same error, or one that says that the Topology Manager cannot be reached."""
    details = error.details() or ""
    if error.code() == StatusCode.UNAVAILABLE and not _is_named(details):
        return Unavailable(f"topology manager: {details}")
    return error
