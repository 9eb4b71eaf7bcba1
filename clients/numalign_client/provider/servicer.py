"""The HintProvider service around a provider that only knows hints and allocations.

Synchronous: an author's code may block. One lock makes calls come one at a time.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TypeAlias

import grpc

from numalign.kube.core.v1 import core_pb2
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import hint_provider_pb2_grpc as hp_grpc
from numalign.v1 import types_pb2 as pb
from numalign_client.provider.base import (
    CannotAllocate,
    CannotJudge,
    Hints,
    NotYet,
    ServedProvider,
)
from numalign_client.provider.books import Books, InDoubt
from numalign_client.provider.messages import allocation, deferral, hint_map, nodes_of
from numalign_client.provider.store import MemoryStore, PartStore

Context: TypeAlias = grpc.ServicerContext

_SIDECAR = "Always"
_WATCH_SECONDS = 0.5
"""How soon a watch notices that nobody listens any more."""


class HintProviderServicer(hp_grpc.HintProviderServicer):
    """Serves one provider over its books. The instance id is new with every servicer.

    With `call_stream` it says that a CallStream is served beside it.
    """

    def __init__(
        self, provider: ServedProvider, store: PartStore | None = None, *, call_stream: bool = False
    ) -> None:
        self._call_stream = call_stream
        self._provider = provider
        self._books = Books(MemoryStore() if store is None else store)
        self._instance_id = uuid.uuid4().hex
        provider.bind(self._books)

    def GetInfo(self, request: hp.GetInfoRequest, context: Context) -> hp.GetInfoResponse:
        """Who this is and what it serves."""
        return hp.GetInfoResponse(
            name=self._provider.name,
            resources=self._provider.resources,
            instance_id=self._instance_id,
            call_stream=self._call_stream,
        )

    def GetTopologyHints(
        self, request: hp.GetTopologyHintsRequest, context: Context
    ) -> hp.GetTopologyHintsResponse:
        """Hints for one container; none for one that holds something already."""
        pod = core_pb2.Pod.FromString(request.pod)
        container = _container(pod, request.container, context)
        response = hp.GetTopologyHintsResponse(instance_id=self._instance_id)
        with self._books.lock:
            self._open(request.admission_id, pod, context)
            if self._held(pod, container.name):
                return response
            try:
                self._fill(response, self._provider.hints(pod, container))
            except CannotJudge as error:
                response.fault = str(error)
            except NotYet as error:
                response.deferral.CopyFrom(deferral(error))
        return response

    def GetPodTopologyHints(
        self, request: hp.GetPodTopologyHintsRequest, context: Context
    ) -> hp.GetPodTopologyHintsResponse:
        """Hints for a pod as a whole; none for one that holds something already."""
        pod = core_pb2.Pod.FromString(request.pod)
        response = hp.GetPodTopologyHintsResponse(instance_id=self._instance_id)
        with self._books.lock:
            self._open(request.admission_id, pod, context)
            if self._books.holds(pod.metadata.uid):
                return response
            try:
                self._fill(response, self._provider.pod_hints(pod))
            except CannotJudge as error:
                response.fault = str(error)
            except NotYet as error:
                response.deferral.CopyFrom(deferral(error))
        return response

    def Allocate(self, request: hp.AllocateRequest, context: Context) -> hp.AllocateResponse:
        """Takes, tentatively, what one container asks for."""
        pod = core_pb2.Pod.FromString(request.pod)
        response = hp.AllocateResponse(instance_id=self._instance_id)
        with self._books.lock:
            self._open(request.admission_id, pod, context)
            container = _container(pod, request.container, context)
            failure = self._take(pod, [container], nodes_of(request.affinity))
            self._finish(response, pod, failure, prepare=request.last and not request.dry_run)
        return response

    def AllocatePod(
        self, request: hp.AllocatePodRequest, context: Context
    ) -> hp.AllocatePodResponse:
        """Takes, tentatively, what every container of a pod asks for."""
        pod = core_pb2.Pod.FromString(request.pod)
        response = hp.AllocatePodResponse(instance_id=self._instance_id)
        with self._books.lock:
            self._open(request.admission_id, pod, context)
            containers = [*pod.spec.init_containers, *pod.spec.containers]
            failure = self._take(pod, containers, nodes_of(request.affinity))
            self._finish(response, pod, failure, prepare=request.last and not request.dry_run)
        return response

    def Seal(self, request: hp.SealRequest, context: Context) -> hp.SealResponse:
        """Makes the part durable if it is not: nothing here waits for every provider to agree."""
        pod = core_pb2.Pod.FromString(request.pod)
        with self._books.lock:
            self._open(request.admission_id, pod, context)
            self._books.prepare()
            return hp.SealResponse(
                instance_id=self._instance_id, allocations=self._books.holds(pod.metadata.uid)
            )

    def Prepare(self, request: hp.PrepareRequest, context: Context) -> hp.PrepareResponse:
        """No admission is of several pods here, so nobody is told to ask (GetInfo)."""
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "this provider takes one pod in an admission")

    def Commit(self, request: hp.CommitRequest, context: Context) -> hp.CommitResponse:
        """The admission is recorded."""
        with self._books.lock:
            pod_uid = self._books.commit(request.admission_id)
            if pod_uid is not None:
                self._provider.committed(pod_uid)
        return hp.CommitResponse(instance_id=self._instance_id)

    def Abort(self, request: hp.AbortRequest, context: Context) -> hp.AbortResponse:
        """The admission is off. `leftovers` keeps a fault of the kubelet; there is none here."""
        with self._books.lock:
            part = self._books.part_of(request.admission_id)
            self._books.abort(request.admission_id)
            if part is not None and part.containers and not self._books.holds(part.pod_uid):
                self._provider.release(part.pod_uid)
        return hp.AbortResponse(instance_id=self._instance_id)

    def PreStartContainer(
        self, request: hp.HintProviderPreStartContainerRequest, context: Context
    ) -> hp.HintProviderPreStartContainerResponse:
        """Nothing to make ready, so nobody is told to ask (GetInfo)."""
        return hp.HintProviderPreStartContainerResponse(instance_id=self._instance_id)

    def PrepareContainer(
        self, request: hp.HintProviderPrepareContainerRequest, context: Context
    ) -> hp.HintProviderPrepareContainerResponse:
        """Says what is to be applied to a container."""
        pod = core_pb2.Pod.FromString(request.pod)
        response = hp.HintProviderPrepareContainerResponse(instance_id=self._instance_id)
        with self._books.lock:
            self._refuse_in_doubt(context)
            for held in self._held(pod, request.container):
                response.allocation.CopyFrom(held)
                for device in held.devices:
                    response.edits.MergeFrom(device.edits)
        return response

    def AddContainer(
        self, request: hp.HintProviderAddContainerRequest, context: Context
    ) -> hp.HintProviderAddContainerResponse:
        """A container is about to start: init containers before it have ended."""
        pod = core_pb2.Pod.FromString(request.pod)
        ended = []
        for container in pod.spec.init_containers:
            if container.name == request.container:
                break
            if container.restart_policy != _SIDECAR:
                ended.append(container.name)
        with self._books.lock:
            self._refuse_in_doubt(context)
            self._books.release_containers(pod.metadata.uid, ended)
            return hp.HintProviderAddContainerResponse(
                instance_id=self._instance_id, allocations=self._books.holds(pod.metadata.uid)
            )

    def RemoveContainer(
        self, request: hp.HintProviderRemoveContainerRequest, context: Context
    ) -> hp.HintProviderRemoveContainerResponse:
        """A container is gone for good: what it holds is given back."""
        with self._books.lock:
            self._refuse_in_doubt(context)
            self._books.release_containers(request.pod_uid, (request.container,))
        return hp.HintProviderRemoveContainerResponse(instance_id=self._instance_id)

    def Release(
        self, request: hp.HintProviderReleaseRequest, context: Context
    ) -> hp.HintProviderReleaseResponse:
        """Pods ended."""
        with self._books.lock:
            self._refuse_in_doubt(context)
            for pod_uid in request.pod_uids:
                # If this fails the books still have the pod, and the next picture asks again.
                self._provider.release(pod_uid)
                self._books.release(pod_uid)
        return hp.HintProviderReleaseResponse(instance_id=self._instance_id)

    def Reconcile(
        self, request: hp.HintProviderReconcileRequest, context: Context
    ) -> hp.HintProviderReconcileResponse:
        """The Topology Manager's picture."""
        active = {pod.pod_uid for pod in request.active_pods}
        with self._books.lock:
            outcome = self._books.outcome(
                active,
                request.committed_admission_ids,
                ready=request.sources_ready,
                record_lost=request.record_lost,
            )
            for pod_uid in outcome.released:
                self._provider.release(pod_uid)
            self._books.reconcile(outcome)
            for pod_uid in outcome.committed:
                self._provider.committed(pod_uid)
            lost = [each for pod in request.recorded_pods for each in self._taken_back(pod)]
            return hp.HintProviderReconcileResponse(
                instance_id=self._instance_id,
                released_pod_uids=outcome.released,
                unknown_pod_uids=sorted(active - self._books.pods()),
                holdings=self._holdings() if request.with_holdings else None,
                lost=lost,
            )

    def GetState(self, request: hp.GetStateRequest, context: Context) -> hp.GetStateResponse:
        """The revision of the books; a third party has no typed books."""
        with self._books.lock:
            return hp.GetStateResponse(instance_id=self._instance_id, revision=self._books.revision)

    def GetAllocatableResources(
        self, request: hp.GetAllocatableResourcesRequest, context: Context
    ) -> hp.GetAllocatableResourcesResponse:
        """Nothing that the node's books would count twice."""
        return hp.GetAllocatableResourcesResponse(instance_id=self._instance_id)

    def Watch(self, request: hp.WatchRequest, context: Context) -> Iterator[hp.WatchResponse]:
        """Streams the revision of the books, beginning with how it stands."""
        sent = 0
        while context.is_active():
            with self._books.lock:
                if self._books.revision == sent:
                    self._books.changed.wait(_WATCH_SECONDS)
                changed, sent = self._books.revision != sent, self._books.revision
            if changed:
                yield hp.WatchResponse(
                    instance_id=self._instance_id,
                    revision=sent,
                    resources=self._provider.resources,
                )

    def _taken_back(self, recorded: hp.RecordedPod) -> Iterator[hp.LostAllocation]:
        """Give a pod back what the record says it was given here; what it cannot have."""
        held = {each.container for each in self._books.holds(recorded.pod_uid)}
        held.update(recorded.finished_containers)
        anything = False
        for given in recorded.allocations:
            devices = [d for d in given.devices if d.provider == self._provider.name]
            name = given.container
            if not devices or name in held:
                continue
            try:
                for device in devices:
                    self._provider.take_back(recorded.pod_uid, device.resource, tuple(device.ids))
            except CannotAllocate as error:
                yield hp.LostAllocation(
                    pod_uid=recorded.pod_uid, container=name, message=str(error)
                )
            else:
                again = pb.ContainerAllocation(container=name, devices=devices)
                self._books.take_back(recorded.pod_uid, again)
                anything = True
        if anything:
            self._provider.committed(recorded.pod_uid)

    def _holdings(self) -> hp.PodHoldings:
        return hp.PodHoldings(
            pods=[
                hp.PodHolding(pod_uid=uid, allocations=self._books.holds(uid))
                for uid in sorted(self._books.pods())
            ]
        )

    def _take(
        self, pod: core_pb2.Pod, containers: list[core_pb2.Container], nodes: frozenset[int] | None
    ) -> hp.AllocationFailure | None:
        for container in containers:
            if self._held(pod, container.name):
                continue
            try:
                given = self._provider.allocate(pod, container, nodes)
            except CannotAllocate as error:
                return hp.AllocationFailure(reason=error.reason, message=str(error))
            except CannotJudge as error:
                return hp.AllocationFailure(fault=str(error))
            except NotYet as error:
                return hp.AllocationFailure(deferral=deferral(error))
            if given:
                self._books.take(allocation(container.name, given))
        return None

    def _finish(
        self,
        response: hp.AllocateResponse | hp.AllocatePodResponse,
        pod: core_pb2.Pod,
        failure: hp.AllocationFailure | None,
        *,
        prepare: bool,
    ) -> None:
        if failure is not None:
            response.failure.CopyFrom(failure)
        elif prepare:
            self._books.prepare()
        response.allocations.extend(self._books.holds(pod.metadata.uid))

    def _fill(
        self,
        response: hp.GetTopologyHintsResponse | hp.GetPodTopologyHintsResponse,
        hints: Hints | None,
    ) -> None:
        message = hint_map(hints)
        if message is not None:
            response.hints.CopyFrom(message)

    def _held(self, pod: core_pb2.Pod, container: str) -> list[pb.ContainerAllocation]:
        return [h for h in self._books.holds(pod.metadata.uid) if h.container == container]

    def _open(self, admission_id: str, pod: core_pb2.Pod, context: Context) -> None:
        self._refuse_in_doubt(context)
        self._books.open(admission_id, pod.metadata.uid)

    def _refuse_in_doubt(self, context: Context) -> None:
        try:
            self._books.refuse_in_doubt()
        except InDoubt:
            context.abort(
                grpc.StatusCode.UNAVAILABLE,
                f"provider {self._provider.name} restarted and waits to be told which "
                "admissions were committed",
            )


def _container(pod: core_pb2.Pod, name: str, context: Context) -> core_pb2.Container:
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        if container.name == name:
            return container
    return context.abort(
        grpc.StatusCode.INVALID_ARGUMENT,
        f'container: pod "{pod.metadata.uid}" has no container "{name}"',
    )
