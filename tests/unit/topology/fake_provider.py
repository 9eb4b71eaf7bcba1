"""A hint provider of a few lines behind a local channel, and a handle to it.

It answers every call, notes what it was asked, and can be down, slow, or another process.
"""

# ruff: noqa: ARG002, N802 - names and arguments are the contract's
from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from grpc import StatusCode

from numalign.rpc.context import Context
from numalign.rpc.local import LocalChannel, LocalServer
from numalign.rpc.methods import Registration
from numalign.topology.provider_handle import ProviderHandle
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import hint_provider_pb2_grpc as hp_grpc
from numalign.v1 import types_pb2 as pb


class FakeProvider(hp_grpc.HintProviderServicer):
    """Serves `resource` on NUMA node 0. `broken` names the calls that fail, with their code.

    `watching` is how many watches are open.
    """

    def __init__(self, name: str, resource: str = "") -> None:
        self.name = name
        self.resource = resource or f"example.com/{name}"
        self.instance = f"{name}-1"
        self.asked: list[str] = []
        self.requests: list[Any] = []
        self.broken: dict[str, StatusCode] = {}
        self.slow: dict[str, float] = {}
        self.changed = asyncio.Event()
        self.watching = 0

    def restart(self) -> None:
        """Be another process."""
        self.instance = f"{self.instance}+"

    async def GetInfo(self, request: hp.GetInfoRequest, context: Context) -> hp.GetInfoResponse:
        await self._take("GetInfo", request, context)
        return hp.GetInfoResponse(
            name=self.name, resources=[self.resource], instance_id=self.instance
        )

    async def GetTopologyHints(
        self, request: hp.GetTopologyHintsRequest, context: Context
    ) -> hp.GetTopologyHintsResponse:
        await self._take("GetTopologyHints", request, context)
        hints = pb.HintList(kind=pb.HintList.KIND_HINTS, masks=[1], preferred=[True])
        return hp.GetTopologyHintsResponse(
            instance_id=self.instance, hints=pb.HintMap(resources={self.resource: hints})
        )

    async def Allocate(self, request: hp.AllocateRequest, context: Context) -> hp.AllocateResponse:
        await self._take("Allocate", request, context)
        device = pb.DeviceAllocation(resource=self.resource, ids=["one"])
        return hp.AllocateResponse(
            instance_id=self.instance,
            allocations=[pb.ContainerAllocation(container=request.container, devices=[device])],
        )

    async def Commit(self, request: hp.CommitRequest, context: Context) -> hp.CommitResponse:
        await self._take("Commit", request, context)
        return hp.CommitResponse(instance_id=self.instance)

    async def Abort(self, request: hp.AbortRequest, context: Context) -> hp.AbortResponse:
        await self._take("Abort", request, context)
        return hp.AbortResponse(instance_id=self.instance)

    async def Reconcile(
        self, request: hp.HintProviderReconcileRequest, context: Context
    ) -> hp.HintProviderReconcileResponse:
        await self._take("Reconcile", request, context)
        return hp.HintProviderReconcileResponse(instance_id=self.instance)

    async def GetPodTopologyHints(
        self, request: hp.GetPodTopologyHintsRequest, context: Context
    ) -> hp.GetPodTopologyHintsResponse:
        await self._take("GetPodTopologyHints", request, context)
        return hp.GetPodTopologyHintsResponse(instance_id=self.instance)

    async def AllocatePod(
        self, request: hp.AllocatePodRequest, context: Context
    ) -> hp.AllocatePodResponse:
        await self._take("AllocatePod", request, context)
        return hp.AllocatePodResponse(instance_id=self.instance)

    async def Seal(self, request: hp.SealRequest, context: Context) -> hp.SealResponse:
        await self._take("Seal", request, context)
        return hp.SealResponse(instance_id=self.instance)

    async def Prepare(self, request: hp.PrepareRequest, context: Context) -> hp.PrepareResponse:
        await self._take("Prepare", request, context)
        return hp.PrepareResponse(instance_id=self.instance)

    async def PrepareContainer(
        self, request: hp.HintProviderPrepareContainerRequest, context: Context
    ) -> hp.HintProviderPrepareContainerResponse:
        await self._take("PrepareContainer", request, context)
        return hp.HintProviderPrepareContainerResponse(instance_id=self.instance)

    async def AddContainer(
        self, request: hp.HintProviderAddContainerRequest, context: Context
    ) -> hp.HintProviderAddContainerResponse:
        await self._take("AddContainer", request, context)
        return hp.HintProviderAddContainerResponse(instance_id=self.instance)

    async def RemoveContainer(
        self, request: hp.HintProviderRemoveContainerRequest, context: Context
    ) -> hp.HintProviderRemoveContainerResponse:
        await self._take("RemoveContainer", request, context)
        return hp.HintProviderRemoveContainerResponse(instance_id=self.instance)

    async def Release(
        self, request: hp.HintProviderReleaseRequest, context: Context
    ) -> hp.HintProviderReleaseResponse:
        await self._take("Release", request, context)
        return hp.HintProviderReleaseResponse(instance_id=self.instance)

    async def GetState(self, request: hp.GetStateRequest, context: Context) -> hp.GetStateResponse:
        await self._take("GetState", request, context)
        return hp.GetStateResponse(instance_id=self.instance)

    async def GetAllocatableResources(
        self, request: hp.GetAllocatableResourcesRequest, context: Context
    ) -> hp.GetAllocatableResourcesResponse:
        await self._take("GetAllocatableResources", request, context)
        return hp.GetAllocatableResourcesResponse(instance_id=self.instance)

    async def PreStartContainer(
        self, request: hp.HintProviderPreStartContainerRequest, context: Context
    ) -> hp.HintProviderPreStartContainerResponse:
        await self._take("PreStartContainer", request, context)
        return hp.HintProviderPreStartContainerResponse(instance_id=self.instance)

    async def Watch(
        self, request: hp.WatchRequest, context: Context
    ) -> AsyncIterator[hp.WatchResponse]:
        self.watching += 1
        try:
            while True:
                yield hp.WatchResponse(
                    instance_id=self.instance, resources=[self.resource], shared_cpus="0-3"
                )
                await self.changed.wait()
                self.changed.clear()
        finally:
            self.watching -= 1

    async def _take(self, name: str, request: object, context: Context) -> None:
        self.asked.append(name)
        self.requests.append(request)
        await asyncio.sleep(self.slow.get(name, 0))
        code = self.broken.get(name)
        if code is not None:
            await context.abort(code, f"{name} is broken")


def handle_to(
    provider: FakeProvider,
    *,
    failure_policy: pb.FailurePolicy.ValueType = pb.FAILURE_POLICY_FAIL,
    introduced: bool = True,
    built_in: bool = False,
    timeout: float = 5.0,
) -> ProviderHandle:
    """A handle; unless told otherwise the provider has the picture."""
    server = LocalServer()
    server.add([Registration(hp_grpc.add_HintProviderServicer_to_server, provider)])
    return ProviderHandle(
        name=provider.name,
        endpoint=f"unix:///run/{provider.name}.sock",
        stub=hp_grpc.HintProviderStub(LocalChannel(server)),
        timeout=timeout,
        built_in=built_in,
        failure_policy=failure_policy,
        instance_id=provider.instance if introduced else "",
    )
