"""Reading the kubelet's answers, and its ways to say no."""

from __future__ import annotations

from typing import Any

import pytest
from grpc import StatusCode, aio
from tests.unit.device.device_world import GPU

from numalign.device.kubelet.client import KubeletClient, devices_from_messages, pod_from_message
from numalign.device.kubelet.ports import KubeletSilent
from numalign.device.kubelet.values import PodKey, ToldDevice
from numalign.kube.podresources.v1 import api_pb2 as v1
from numalign.model.ids import DeviceId


def message(*nodes: int, topology: bool = True) -> v1.ContainerDevices:
    told = v1.ContainerDevices(resource_name=GPU, device_ids=["a", "b"])
    if topology:
        told.topology.CopyFrom(v1.TopologyInfo(nodes=[v1.NUMANode(ID=node) for node in nodes]))
    return told


@pytest.mark.parametrize(
    ("told", "nodes"),
    [
        pytest.param(message(topology=False), None, id="no topology"),
        pytest.param(message(), (), id="a topology without nodes"),
        pytest.param(message(0), (0,), id="node 0"),
        pytest.param(message(1, 3), (1, 3), id="several nodes"),
        pytest.param(message(-1, 2), (-1, 2), id="whatever the kubelet says"),
    ],
)
def test_every_id_has_the_nodes_of_its_entry(
    told: v1.ContainerDevices, nodes: tuple[int, ...] | None
) -> None:
    assert devices_from_messages([told]) == (
        ToldDevice(GPU, DeviceId("a"), nodes),
        ToldDevice(GPU, DeviceId("b"), nodes),
    )


def test_a_pod_is_known_by_its_name() -> None:
    told = pod_from_message(
        v1.PodResources(
            name="p", namespace="ns", containers=[v1.ContainerResources(name="c"), HOLDING]
        )
    )

    assert told.key == PodKey("ns", "p")
    assert {name: len(held) for name, held in told.containers.items()} == {"c": 0, "d": 2}


HOLDING = v1.ContainerResources(name="d", devices=[message(0)])


class Answering:
    """Looks like a channel; every call ends in one way."""

    def __init__(self, code: StatusCode) -> None:
        self._code = code

    def unary_unary(self, path: str, **options: Any) -> Any:
        assert path.startswith("/v1.PodResourcesLister/")
        assert "request_serializer" in options

        async def call(request: Any, **limits: float) -> Any:
            assert limits == {"timeout": 0.5}
            raise aio.AioRpcError(self._code, aio.Metadata(), aio.Metadata(), details="so")

        return call


def failing(code: StatusCode) -> KubeletClient:
    channel: Any = Answering(code)
    return KubeletClient(channel)


@pytest.mark.parametrize(
    "code", [StatusCode.UNKNOWN, StatusCode.NOT_FOUND, StatusCode.UNIMPLEMENTED]
)
async def test_no_such_pod_and_no_such_call_are_answers(code: StatusCode) -> None:
    assert await failing(code).pod(PodKey("ns", "p"), 0.5) is None


@pytest.mark.parametrize("code", [StatusCode.UNAVAILABLE, StatusCode.RESOURCE_EXHAUSTED])
async def test_everything_else_is_silence(code: StatusCode) -> None:
    client = failing(code)
    for call in (client.pod(PodKey("ns", "p"), 0.5), client.pods(0.5), client.allocatable(0.5)):
        with pytest.raises(KubeletSilent, match=f"{code.name}: so"):
            await call
