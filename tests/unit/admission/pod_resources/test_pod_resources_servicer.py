"""What the recordings do not say: counting, the limit, the first version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from grpc import StatusCode, aio

from numalign.admission.pod_resources.listing import find_pod
from numalign.admission.pod_resources.rate_limit import TokenBucket
from numalign.admission.pod_resources.servicer import (
    AlphaPodResourcesServicer,
    PodResourcesServicer,
)
from numalign.admission.pod_resources.values import (
    Held,
    HeldDevices,
    Kind,
    ListedContainer,
    ListedPod,
)
from numalign.kube.podresources.v1 import api_pb2 as v1
from numalign.kube.podresources.v1 import api_pb2_grpc as v1_grpc
from numalign.kube.podresources.v1alpha1 import api_pb2 as v1alpha1
from numalign.kube.podresources.v1alpha1 import api_pb2_grpc as v1alpha1_grpc
from numalign.model.ids import PodUid
from numalign.rpc.channel import open_local_channel
from numalign.rpc.local import LocalServer
from numalign.rpc.methods import Registration
from numalign.telemetry.kubelet_metrics import POD_RESOURCES
from numalign.telemetry.metrics import Metrics

RUNNING = ListedPod(
    uid=PodUid("u"),
    name="p",
    namespace="ns",
    containers=(ListedContainer("s", Kind.SIDECAR), ListedContainer("a", Kind.APP)),
)
ENDED = ListedPod(uid=PodUid("e"), name="e", namespace="ns", containers=())


class OneOfEach:
    """A running pod and one that has ended."""

    async def active_pods(self) -> Sequence[ListedPod]:
        return [RUNNING]

    async def all_pods(self) -> Sequence[ListedPod]:
        return [RUNNING, ENDED]

    async def free_ended(self) -> None:
        """Nothing to free."""

    async def find(self, namespace: str, name: str) -> ListedPod | None:
        return find_pod([RUNNING], namespace, name)

    def held(self, pod_uid: PodUid, container: str) -> Held:
        assert pod_uid in {RUNNING.uid, ENDED.uid}
        device = HeldDevices(resource="r", ids=(container,), numa_nodes=(1,))
        return Held(devices=(device,), cpus=(4,))

    async def allocatable(self) -> Held:
        return Held(cpus=(1, 2))


def stubs(metrics: Metrics) -> tuple[Any, Any]:
    source, limit = OneOfEach(), TokenBucket(lambda: 0.0)
    server = LocalServer()
    server.add(
        [
            Registration(
                v1_grpc.add_PodResourcesListerServicer_to_server,
                PodResourcesServicer(source, limit, metrics),
            ),
            Registration(
                v1alpha1_grpc.add_PodResourcesListerServicer_to_server,
                AlphaPodResourcesServicer(source, limit, metrics),
            ),
        ]
    )
    channel = open_local_channel(server)
    return v1_grpc.PodResourcesListerStub(channel), v1alpha1_grpc.PodResourcesListerStub(channel)


def counted(metrics: Metrics) -> dict[str, float]:
    lines = [line for line in metrics.text().splitlines() if not line.startswith("#")]
    found = dict(line.rsplit(" ", 1) for line in lines)
    prefix = "kubelet_pod_resources_endpoint_"
    return {
        name.removeprefix(prefix): float(value) for name, value in found.items() if float(value)
    }


async def test_calls_are_counted_as_the_kubelet_counts() -> None:
    metrics = Metrics(POD_RESOURCES, enabled=True)
    present, first = stubs(metrics)
    await present.List(v1.ListPodResourcesRequest())
    await present.GetAllocatableResources(v1.AllocatableResourcesRequest())
    await present.Get(v1.GetPodResourcesRequest(pod_name="p", pod_namespace="ns"))
    with pytest.raises(aio.AioRpcError):
        await present.Get(v1.GetPodResourcesRequest(pod_name="e", pod_namespace="ns"))
    await first.List(v1alpha1.ListPodResourcesRequest())

    label, alpha = '{server_api_version="v1"}', '{server_api_version="v1alpha1"}'
    assert counted(metrics) == {
        f"requests_total{label}": 4,
        f"requests_total{alpha}": 1,
        f"requests_list{label}": 1,
        f"requests_get_allocatable{label}": 1,
        f"requests_get{label}": 2,
        f"errors_get{label}": 1,
    }


async def test_both_versions_share_one_limit_and_rejected_calls_are_not_counted() -> None:
    metrics = Metrics(POD_RESOURCES, enabled=True)
    present, first = stubs(metrics)
    for _ in range(10):
        await present.List(v1.ListPodResourcesRequest())

    for call in (
        present.List(v1.ListPodResourcesRequest()),
        present.Get(v1.GetPodResourcesRequest()),
        present.GetAllocatableResources(v1.AllocatableResourcesRequest()),
        first.List(v1alpha1.ListPodResourcesRequest()),
    ):
        with pytest.raises(aio.AioRpcError) as raised:
            await call
        assert raised.value.code() == StatusCode.RESOURCE_EXHAUSTED
        assert raised.value.details() == "rejected by rate limit"
    assert counted(metrics)['requests_total{server_api_version="v1"}'] == 10


async def test_the_first_version_shows_every_pod_and_only_devices_of_app_containers() -> None:
    _, first = stubs(Metrics(POD_RESOURCES, enabled=False))

    response = await first.List(v1alpha1.ListPodResourcesRequest())

    assert response == v1alpha1.ListPodResourcesResponse(
        pod_resources=[
            v1alpha1.PodResources(
                name="p",
                namespace="ns",
                containers=[
                    v1alpha1.ContainerResources(
                        name="a",
                        devices=[v1alpha1.ContainerDevices(resource_name="r", device_ids=["a"])],
                    )
                ],
            ),
            v1alpha1.PodResources(name="e", namespace="ns"),
        ]
    )
