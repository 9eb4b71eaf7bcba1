"""Asks the built-in providers for their books, and says when to ask again.

Reads take no turn: a picture that is read in the middle of an admission may show what a pod
was given before the pod itself. Whoever watches gets the rest as the next picture.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import TypeVar

from grpc import aio

from numalign.model.cpu_set import CpuSet
from numalign.model.feature_gates import FeatureGates
from numalign.model.ids import PodUid
from numalign.provider.pod_cache import PodCache
from numalign.topology.node_resources.messages import node_resources
from numalign.topology.node_resources.shared_requests import shared_millicores
from numalign.topology.provider_handle import ProviderDown, ProviderHandle
from numalign.topology.records import Admitted, Records
from numalign.topology.registry import ProviderRegistry
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import node_resources_pb2 as nr
from numalign.v1 import topology_pb2 as tm

T = TypeVar("T")

_DEVICE = "device"
"""The name of the built-in provider of devices."""

SETTLE_SECONDS = 0.1
"""Changes that follow each other within this time are told as one."""


class NodeResourcesCollector:
    """Reads one node. Pods that do not change are looked at once."""

    def __init__(
        self, records: Records, registry: ProviderRegistry, pods: PodCache, gates: FeatureGates
    ) -> None:
        self._records = records
        self._registry = registry
        self._pods = pods
        self._gates = gates
        self._asked: dict[PodUid, tuple[Admitted, int]] = {}

    async def read(self) -> nr.NodeResources:
        """The node as it stands. Raises Unavailable where a provider does not answer."""
        revision = self._records.revision
        states = await self._each(
            lambda handle: handle.stub.GetState(hp.GetStateRequest(), timeout=handle.timeout)
        )
        cpu, memory, device = hp.CpuState(), hp.MemoryState(), hp.DeviceState()
        for state in states:
            match state.WhichOneof("state"):
                case "cpu":
                    cpu = state.cpu
                case "memory":
                    memory = state.memory
                case "device":
                    device = state.device
        return node_resources(revision, cpu, memory, device, self._shared_millicores())

    async def watch(self) -> AsyncIterator[nr.NodeResources]:
        """The node as it stands, and again whenever the picture is another one, without end."""
        told: nr.NodeResources | None = None
        while True:
            revision, changes = self._records.revision, self._registry.changes
            picture = await self.read()
            if picture != told:
                told = picture
                yield picture
            await _first(self._records.wait_changed(revision), self._registry.wait_changed(changes))
            await asyncio.sleep(SETTLE_SECONDS)

    async def allocatable(self) -> tm.GetAllocatableResponse:
        """What the providers can give out at all. Raises Unavailable."""
        request = hp.GetAllocatableResourcesRequest()
        answers = await self._each(
            lambda handle: handle.stub.GetAllocatableResources(request, timeout=handle.timeout)
        )
        response = tm.GetAllocatableResponse()
        cpus = CpuSet()
        for answer in answers:
            cpus |= CpuSet.parse(answer.cpus)
            response.memory.extend(answer.memory)
            response.devices.extend(answer.devices)
        response.cpus = str(cpus)
        return response

    async def devices(self) -> tm.ListDevicesResponse:
        """Every device as the built-in provider last heard of it. Raises Unavailable."""
        response = tm.ListDevicesResponse()
        for handle in self._built_in():
            if handle.name != _DEVICE:
                continue
            state = await _answer(
                handle, lambda h: h.stub.GetState(hp.GetStateRequest(), timeout=h.timeout)
            )
            for resource in state.device.resources:
                listed = response.resources.add(resource=resource.resource)
                for device in resource.devices:
                    listed.devices.add(
                        id=device.id,
                        healthy=device.healthy,
                        has_topology=device.has_topology,
                        numa_nodes=device.numa_nodes,
                    )
        return response

    def _shared_millicores(self) -> int:
        asked: dict[PodUid, tuple[Admitted, int]] = {}
        for admitted in self._records.all():
            known = self._asked.get(admitted.pod_uid)
            if known is None or known[0] is not admitted:
                known = (admitted, self._asked_by(admitted))
            asked[admitted.pod_uid] = known
        self._asked = asked
        return sum(millicores for _, millicores in asked.values())

    def _asked_by(self, admitted: Admitted) -> int:
        record = admitted.message
        return shared_millicores(
            self._pods.decode(admitted.pod),
            {a.container for a in record.allocations if a.cpus},
            self._gates,
            has_own_cpus=bool(record.pod_allocation.cpus),
        )

    async def _each(self, call: Callable[[ProviderHandle], Awaitable[T]]) -> list[T]:
        return await asyncio.gather(*(_answer(handle, call) for handle in self._built_in()))

    def _built_in(self) -> list[ProviderHandle]:
        return [handle for handle in self._registry.handles if handle.built_in]


async def _answer(handle: ProviderHandle, call: Callable[[ProviderHandle], Awaitable[T]]) -> T:
    try:
        return await call(handle)
    except aio.AioRpcError as error:
        raise ProviderDown(handle.name, f"{error.code().name}: {error.details()}") from error


async def _first(*waits: Coroutine[None, None, None]) -> None:
    """Wait for the first of these; the others are given up."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
