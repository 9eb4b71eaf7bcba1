"""The pod resources services, v1 and v1alpha1: limit, count, ask the source, translate."""

from __future__ import annotations

from grpc import StatusCode

from numalign.admission.pod_resources.listing import app_containers, not_found, shown_containers
from numalign.admission.pod_resources.messages import (
    allocatable_message,
    alpha_container_message,
    alpha_pod_message,
    container_message,
    pod_message,
)
from numalign.admission.pod_resources.ports import PodResourcesSource
from numalign.admission.pod_resources.rate_limit import REJECTED, TokenBucket
from numalign.admission.pod_resources.values import ListedPod
from numalign.kube.podresources.v1 import api_pb2 as v1
from numalign.kube.podresources.v1 import api_pb2_grpc as v1_grpc
from numalign.kube.podresources.v1alpha1 import api_pb2 as v1alpha1
from numalign.kube.podresources.v1alpha1 import api_pb2_grpc as v1alpha1_grpc
from numalign.rpc.context import Context
from numalign.telemetry.metrics import Metrics

_PREFIX = "kubelet_pod_resources_endpoint_"


class PodResourcesServicer(v1_grpc.PodResourcesListerServicer):
    """Serves v1 over one source.

    `list_active` is the gate KubeletPodResourcesListUseActivePods: whether List leaves out
    pods that have ended (PR-3). `metrics` has the counters of PR-14.
    """

    def __init__(
        self,
        source: PodResourcesSource,
        limit: TokenBucket,
        metrics: Metrics,
        *,
        list_active: bool = True,
    ) -> None:
        self._source = source
        self._limit = limit
        self._metrics = metrics
        self._list_active = list_active

    async def List(
        self, request: v1.ListPodResourcesRequest, context: Context
    ) -> v1.ListPodResourcesResponse:
        """Every pod and what its containers hold (PR-3)."""
        await _limited(self._limit, context)
        self._count("requests_total")
        self._count("requests_list")
        source = self._source
        pods = await (source.active_pods() if self._list_active else source.all_pods())
        await source.free_ended()
        return v1.ListPodResourcesResponse(pod_resources=[self._pod(pod) for pod in pods])

    async def Get(
        self, request: v1.GetPodResourcesRequest, context: Context
    ) -> v1.GetPodResourcesResponse:
        """One pod (PR-6)."""
        await _limited(self._limit, context)
        self._count("requests_total")
        self._count("requests_get")
        pod = await self._source.find(request.pod_namespace, request.pod_name)
        if pod is None:
            self._count("errors_get")
            text = not_found(request.pod_namespace, request.pod_name)
            await context.abort(StatusCode.UNKNOWN, text)
        return v1.GetPodResourcesResponse(pod_resources=self._pod(pod))

    async def GetAllocatableResources(
        self, request: v1.AllocatableResourcesRequest, context: Context
    ) -> v1.AllocatableResourcesResponse:
        """What the node can give out, whether it is given out or not (PR-12)."""
        await _limited(self._limit, context)
        self._count("requests_total")
        self._count("requests_get_allocatable")
        return allocatable_message(await self._source.allocatable())

    def _pod(self, pod: ListedPod) -> v1.PodResources:
        return pod_message(
            pod,
            [
                container_message(name, self._source.held(pod.uid, name))
                for name in shown_containers(pod)
            ],
        )

    def _count(self, name: str) -> None:
        self._metrics.counter(_PREFIX + name).labels("v1").inc()


class AlphaPodResourcesServicer(v1alpha1_grpc.PodResourcesListerServicer):
    """Serves v1alpha1 over the same source, under the same limit (PR-13)."""

    def __init__(self, source: PodResourcesSource, limit: TokenBucket, metrics: Metrics) -> None:
        self._source = source
        self._limit = limit
        self._metrics = metrics

    async def List(
        self, request: v1alpha1.ListPodResourcesRequest, context: Context
    ) -> v1alpha1.ListPodResourcesResponse:
        """Every known pod and the devices of its app containers."""
        await _limited(self._limit, context)
        self._metrics.counter(_PREFIX + "requests_total").labels("v1alpha1").inc()
        pods = await self._source.all_pods()
        await self._source.free_ended()
        return v1alpha1.ListPodResourcesResponse(
            pod_resources=[
                alpha_pod_message(
                    pod,
                    [
                        alpha_container_message(name, self._source.held(pod.uid, name))
                        for name in app_containers(pod)
                    ],
                )
                for pod in pods
            ]
        )


async def _limited(limit: TokenBucket, context: Context) -> None:
    """End the call where the limit is reached; such calls are not counted (PR-14)."""
    if not limit.take():
        await context.abort(StatusCode.RESOURCE_EXHAUSTED, REJECTED)
