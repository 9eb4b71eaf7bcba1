"""The kubelet's pod resources socket: ask, and read what it tells of devices."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from pathlib import Path
from typing import TypeVar

from grpc import StatusCode, aio

from numalign.device.kubelet.ports import KubeletSilent
from numalign.device.kubelet.values import PodKey, ToldDevice, ToldPod
from numalign.kube.podresources.v1 import api_pb2 as v1
from numalign.kube.podresources.v1 import api_pb2_grpc as v1_grpc
from numalign.model.ids import DeviceId
from numalign.rpc.channel import socket_target

T = TypeVar("T")

_NOT_TOLD = frozenset({StatusCode.UNKNOWN, StatusCode.NOT_FOUND, StatusCode.UNIMPLEMENTED})
"""How a kubelet says that there is no such pod (PR-6), or that it does not serve Get."""


_OPTIONS = (
    # What a kubelet tells of a full node can be more than the usual 4 MiB.
    ("grpc.max_receive_message_length", 16 << 20),
    ("grpc.default_authority", "localhost"),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.enable_http_proxy", 0),
)


def open_kubelet(path: Path) -> aio.Channel:
    """A channel to the kubelet's pod resources socket; it connects at the first call."""
    return aio.insecure_channel(socket_target(path), options=_OPTIONS)


class KubeletClient:
    """A `KubeletDevices` over a channel to the socket."""

    def __init__(self, channel: aio.Channel) -> None:
        self._channel = channel
        self._stub: v1_grpc.PodResourcesListerAsyncStub = v1_grpc.PodResourcesListerStub(channel)

    async def allocatable(self, seconds: float) -> tuple[ToldDevice, ...]:
        """Healthy devices, held or not."""
        request = v1.AllocatableResourcesRequest()
        answer = await _answer(self._stub.GetAllocatableResources(request, timeout=seconds))
        return devices_from_messages(answer.devices)

    async def pods(self, seconds: float) -> tuple[ToldPod, ...]:
        """Every active pod."""
        answer = await _answer(self._stub.List(v1.ListPodResourcesRequest(), timeout=seconds))
        return tuple(pod_from_message(pod) for pod in answer.pod_resources)

    async def pod(self, key: PodKey, seconds: float) -> ToldPod | None:
        """One pod; None where there is none, or the kubelet cannot be asked for one."""
        request = v1.GetPodResourcesRequest(pod_name=key.name, pod_namespace=key.namespace)
        try:
            answer = await self._stub.Get(request, timeout=seconds)
        except aio.AioRpcError as error:
            if error.code() in _NOT_TOLD:
                return None
            raise _silent(error) from error
        return pod_from_message(answer.pod_resources)

    async def close(self) -> None:
        """Close the channel."""
        await self._channel.close()


def pod_from_message(message: v1.PodResources) -> ToldPod:
    """One pod and its devices."""
    return ToldPod(
        PodKey(message.namespace, message.name),
        {
            container.name: devices_from_messages(container.devices)
            for container in message.containers
        },
    )


def devices_from_messages(messages: Iterable[v1.ContainerDevices]) -> tuple[ToldDevice, ...]:
    """Each id by itself, with the NUMA nodes of its entry."""
    return tuple(
        ToldDevice(message.resource_name, DeviceId(device), _nodes(message))
        for message in messages
        for device in message.device_ids
    )


def _nodes(message: v1.ContainerDevices) -> tuple[int, ...] | None:
    if not message.HasField("topology"):
        return None
    return tuple(node.ID for node in message.topology.nodes)


async def _answer(call: Awaitable[T]) -> T:
    try:
        return await call
    except aio.AioRpcError as error:
        raise _silent(error) from error


def _silent(error: aio.AioRpcError) -> KubeletSilent:
    return KubeletSilent(f"{error.code().name}: {error.details()}")
