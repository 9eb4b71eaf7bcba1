"""The HintProvider service in observer mode: look at the kubelet, then decide as always."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from numalign.device.messages import DeviceBooks
from numalign.device.state import DeviceState
from numalign.model.ids import AdmissionId
from numalign.model.pod import Pod
from numalign.provider.audience import Observer
from numalign.provider.ledger import Ledger
from numalign.provider.pod_cache import PodCache
from numalign.provider.servicer import HintProviderServicer
from numalign.rpc.context import Context
from numalign.v1 import hint_provider_pb2 as hp

LookAt = Callable[[AdmissionId, Pod], Awaitable[None]]
"""Learns what is to be known before a pod is decided on; never raises."""


class LookingServicer(HintProviderServicer[DeviceState]):
    """Serves one ledger; before a pod is decided on, its devices are looked up."""

    def __init__(
        self,
        ledger: Ledger[DeviceState],
        books: DeviceBooks,
        observer: Observer[DeviceState],
        pods: PodCache,
        look_at: LookAt,
    ) -> None:
        super().__init__(ledger, books, observer, pods)
        self._looked_at = look_at

    async def GetTopologyHints(
        self, request: hp.GetTopologyHintsRequest, context: Context
    ) -> hp.GetTopologyHintsResponse:
        """Hints for one container, over the devices that it has."""
        await self._look_at(request.admission_id, request.pod)
        return await super().GetTopologyHints(request, context)

    async def GetPodTopologyHints(
        self, request: hp.GetPodTopologyHintsRequest, context: Context
    ) -> hp.GetPodTopologyHintsResponse:
        """Hints for a pod as a whole, over the devices that it has."""
        await self._look_at(request.admission_id, request.pod)
        return await super().GetPodTopologyHints(request, context)

    async def Allocate(self, request: hp.AllocateRequest, context: Context) -> hp.AllocateResponse:
        """Records what one container has."""
        await self._look_at(request.admission_id, request.pod)
        return await super().Allocate(request, context)

    async def _look_at(self, admission_id: str, pod: bytes) -> None:
        await self._looked_at(AdmissionId(admission_id), self._pods.decode(pod))
