"""The Admission service: the one door for node agents.

It hands pods to the Topology Manager byte for byte and decides nothing by itself: who is admitted
is recorded there, and a restart of this service loses nothing. What it answered is noted in a
journal, on which nothing depends.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing

from grpc import aio

from numalign.admission.admit_chain import AdmitChain
from numalign.admission.journal.journal import Journal
from numalign.admission.judging import Judging, answered, named
from numalign.admission.node_file import KnownNode
from numalign.admission.observer import AnswerObserver
from numalign.admission.pod_stream import PodStream
from numalign.admission.received import ReceivedAdmit
from numalign.errors import (
    FieldViolation,
    InvalidInput,
    NotKept,
    Unavailable,
)
from numalign.rpc.context import Context
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import topology_pb2_grpc as tm_grpc

Simulator = Callable[[ad.SimulateRequest], AsyncGenerator[ad.SimulateResponse, None]]
"""Answers a simulation; closed early, nothing of it goes on."""


class AdmissionServicer(ad_grpc.AdmissionServicer):
    """Serves agents over one Topology Manager."""

    def __init__(
        self,
        topology: tm_grpc.TopologyManagerAsyncStub,
        default_owner: str,
        observer: AnswerObserver,
        noted: Callable[[int], None],
        chain: AdmitChain,
        journal: Journal | None,
        simulated: Simulator,
    ) -> None:
        """Make it. `noted` hears the revision of every answer that changed something.

        `chain` judges pods once it knows the Node object, or others have handlers in it.
        `journal` is where decisions are noted; None: nowhere. `simulated` answers simulations.
        """
        self._topology = topology
        self._default_owner = default_owner
        self._chain = chain
        self._journal = journal
        self._simulated = simulated
        self._judging = Judging(topology, default_owner, observer, noted, chain, journal)

    async def Admit(
        self, request: ad.AdmitRequest | ReceivedAdmit, context: Context
    ) -> ad.AdmitResponse:
        """Decides on one pod."""
        if isinstance(request, ad.AdmitRequest):
            request = ReceivedAdmit.from_message(request)
        return await self._judging.admit(request, context.time_remaining())

    async def AdmitPods(
        self,
        request_iterator: AsyncIterator[ad.AdmitPodsRequest | ReceivedAdmit],
        context: Context,
    ) -> AsyncIterator[ad.AdmitPodsResponse]:
        """Decides on many pods in the order sent."""
        stream = PodStream(self._judging, context.time_remaining)
        async with aclosing(stream.answers(request_iterator)) as answers:
            async for answer in answers:
                yield answer

    async def Release(self, request: ad.ReleaseRequest, context: Context) -> ad.ReleaseResponse:
        """Gives back everything that a pod holds."""
        response = await answered(
            self._topology.Release(
                tm.TopologyManagerReleaseRequest(pod_uid=request.pod_uid),
                timeout=context.time_remaining(),
            )
        )
        self._judging.noted(response.revision)
        return ad.ReleaseResponse(revision=response.revision)

    async def Reconcile(
        self, request: ad.ReconcileRequest, context: Context
    ) -> ad.ReconcileResponse:
        """Releases the pods of one owner that the owner no longer has."""
        picture = ad.ReconcileRequest()
        picture.CopyFrom(request)
        picture.owner = picture.owner or self._default_owner
        response = await answered(
            self._topology.Reconcile(
                tm.TopologyManagerReconcileRequest(picture=picture),
                timeout=context.time_remaining(),
            )
        )
        self._judging.noted(response.outcome.revision)
        return response.outcome

    async def PreparePod(
        self, request: ad.PreparePodRequest, context: Context
    ) -> ad.PreparePodResponse:
        """Has the resource claims of an admitted pod prepared by their drivers."""
        response = await answered(
            self._topology.PreparePod(
                tm.TopologyManagerPreparePodRequest(
                    pod=request.pod.SerializeToString(deterministic=True), claims=request.claims
                ),
                timeout=context.time_remaining(),
            )
        )
        self._judging.noted(response.preparation.revision)
        return response.preparation

    async def PrepareContainer(
        self, request: ad.PrepareContainerRequest, context: Context
    ) -> ad.PrepareContainerResponse:
        """Says everything that is to be applied to a container before it starts."""
        response = await answered(
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
        await answered(
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
        await answered(
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
        response = await answered(
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
            raise named(error) from error
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

    async def Simulate(
        self, request: ad.SimulateRequest, context: Context
    ) -> AsyncIterator[ad.SimulateResponse]:
        """Says what would be decided on pods, over a copy of the node."""
        async with aclosing(self._simulated(request)) as parts:
            async for part in parts:
                yield part

    def _kept_journal(self) -> Journal:
        if self._journal is None:
            raise NotKept("no journal of decisions is kept here (numalign.journal.size is 0)")
        return self._journal

    async def _watch(
        self, from_revision: int, context: Context
    ) -> AsyncGenerator[ad.WatchAssignmentsResponse, None]:
        stream = self._topology.WatchAdmissions(
            tm.WatchAdmissionsRequest(from_revision=from_revision),
            timeout=context.time_remaining(),
        )
        try:
            # Not `async for`: gRPC's generator, left before its end as by a list, waits with its
            # call in a cycle until the interpreter looks for garbage.
            while isinstance(response := await stream.read(), tm.WatchAdmissionsResponse):
                yield response.event
        except aio.AioRpcError as error:
            raise named(error) from error
        finally:
            stream.cancel()
