"""What the driver serves: claims in both versions of the interface, health, and who it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from grpc.aio import ServicerContext
from prepared_claims import ClaimRefused, PreparedClaims

from numalign.kube.dra.health.v1alpha1 import api_pb2 as health
from numalign.kube.dra.health.v1alpha1 import api_pb2_grpc as health_grpc
from numalign.kube.pluginregistration.v1 import api_pb2 as registration
from numalign.kube.pluginregistration.v1 import api_pb2_grpc as registration_grpc

POOL = "files"
HEALTH_SECONDS = 0.5
HEALTH_TIMEOUT_SECONDS = 10

Note = Callable[[str], None]


class FileDriver:
    """NodePrepareResources and NodeUnprepareResources; `messages` are those of one version."""

    def __init__(self, messages: Any, claims: PreparedClaims, note: Note) -> None:  # noqa: ANN401
        self._messages = messages
        self._claims = claims
        self._note = note

    async def NodePrepareResources(self, request: Any, context: ServicerContext) -> Any:  # noqa: ANN401
        """Prepares each claim; one that cannot be does not keep the others from it."""
        response = self._messages.NodePrepareResourcesResponse()
        for claim in request.claims:
            entry = response.claims[claim.uid]
            try:
                devices, done = self._claims.prepare(claim.namespace, claim.name, claim.uid)
            except ClaimRefused as error:
                entry.error = str(error)
                continue
            self._note(f"{'prepared' if done else 'kept'} {claim.uid}")
            for device in devices:
                told = entry.devices.add(
                    request_names=device.requests,
                    pool_name=device.pool,
                    device_name=device.device,
                    cdi_device_ids=device.cdi_names,
                )
                if device.share_id is not None and hasattr(told, "share_id"):
                    told.share_id = device.share_id
        return response

    async def NodeUnprepareResources(self, request: Any, context: ServicerContext) -> Any:  # noqa: ANN401
        """Undoes it."""
        response = self._messages.NodeUnprepareResourcesResponse()
        for claim in request.claims:
            try:
                done = self._claims.unprepare(claim.uid)
            except ClaimRefused as error:
                response.claims[claim.uid].error = str(error)
                continue
            self._note(f"{'unprepared' if done else 'unknown'} {claim.uid}")
            response.claims[claim.uid].SetInParent()
        return response


class FileHealth(health_grpc.DRAResourceHealthServicer):
    """Tells the health of every device, again and again."""

    def __init__(self, claims: PreparedClaims) -> None:
        self._claims = claims

    async def NodeWatchResources(
        self, request: health.NodeWatchResourcesRequest, context: ServicerContext
    ) -> AsyncIterator[health.NodeWatchResourcesResponse]:
        """Streams it."""
        while True:
            yield health.NodeWatchResourcesResponse(
                devices=[
                    health.DeviceHealth(
                        device=health.DeviceIdentifier(pool_name=POOL, device_name=name),
                        health=health.HEALTHY if is_well else health.UNHEALTHY,
                        last_updated_time=int(time.time()),
                        health_check_timeout_seconds=HEALTH_TIMEOUT_SECONDS,
                    )
                    for name, is_well in self._claims.health().items()
                ]
            )
            await asyncio.sleep(HEALTH_SECONDS)


class FileRegistration(registration_grpc.RegistrationServicer):
    """What the plugin watcher asks."""

    def __init__(self, driver: str, endpoint: Path, versions: list[str], note: Note) -> None:
        self._info = registration.PluginInfo(
            type="DRAPlugin", name=driver, endpoint=str(endpoint), supported_versions=versions
        )
        self._note = note

    async def GetInfo(
        self, request: registration.InfoRequest, context: ServicerContext
    ) -> registration.PluginInfo:
        """Who this is."""
        return self._info

    async def NotifyRegistrationStatus(
        self, request: registration.RegistrationStatus, context: ServicerContext
    ) -> registration.RegistrationStatusResponse:
        """Whether it was taken in."""
        self._note("registered" if request.plugin_registered else f"refused: {request.error}")
        return registration.RegistrationStatusResponse()
