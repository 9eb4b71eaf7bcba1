"""The connection to one plugin of a DRA driver: every call of the interface, with its deadline.

Separate from the drivers, which know who is there. The two versions of the interface differ in
one field; requests and answers are converted here (DRA-12).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias, cast

from google.protobuf.message import Message
from grpc import ChannelConnectivity, aio

from numalign.dra import texts
from numalign.dra.answers import Entry
from numalign.dra.health import Device, Health, Report
from numalign.dra.values import ClaimDevice, ClaimInfo
from numalign.dra.versions import HEALTH_SERVICE, DriverService
from numalign.errors import NumalignError
from numalign.kube.dra.health.v1alpha1 import api_pb2 as health_pb
from numalign.kube.dra.health.v1alpha1 import api_pb2_grpc as health_grpc
from numalign.kube.dra.v1 import api_pb2 as v1
from numalign.kube.dra.v1 import api_pb2_grpc as v1_grpc
from numalign.kube.dra.v1beta1 import api_pb2 as v1beta1
from numalign.kube.dra.v1beta1 import api_pb2_grpc as v1beta1_grpc
from numalign.plugins.texts import rpc_error
from numalign.rpc.channel import socket_target
from numalign.rpc.deadline import within

CALL_SECONDS = 45.0
"""How long a driver may take to answer (DRA-6)."""

_SHARE = 0.9
"""Part of the caller's time that a driver may take, so that its failure is still told."""

_OPTIONS: tuple[tuple[str, Any], ...] = (
    ("grpc.default_authority", "localhost"),
    ("grpc.max_receive_message_length", 16 << 20),
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # A plugin that comes back at the same path is another plugin.
    ("grpc.use_local_subchannel_pool", 1),
)

_HEALTH = {
    health_pb.HEALTHY: Health.HEALTHY,
    health_pb.UNHEALTHY: Health.UNHEALTHY,
}

_Prepared: TypeAlias = v1.NodePrepareResourcesResponse | v1beta1.NodePrepareResourcesResponse
_Unprepared: TypeAlias = v1.NodeUnprepareResourcesResponse | v1beta1.NodeUnprepareResourcesResponse

Observe: TypeAlias = Callable[[str, str, str, float], None]
"""Hears of a call: driver, method as it travels, gRPC's name of the code, seconds (DRA-40)."""


class DriverFailed(NumalignError):
    """A driver's plugin does not answer, or answers with an error; the text is Go's."""


class DriverConnection:
    """A plugin of `driver` at `endpoint`, spoken to in `service`."""

    def __init__(
        self,
        driver: str,
        endpoint: Path,
        service: DriverService,
        versions: Iterable[str],
        call_seconds: float,
        observe: Observe,
    ) -> None:
        """Connecting begins with `follow`; nothing is sent before."""
        self.driver = driver
        self.endpoint = endpoint
        self.service = service
        self.tells_health = HEALTH_SERVICE in versions
        self.connected = False
        self._call_seconds = call_seconds
        self._observe = observe
        self._channel = aio.insecure_channel(socket_target(endpoint), options=_OPTIONS)

    async def follow(self) -> None:
        """Keep `connected` true to the socket, and connect whenever it does not answer (DRA-7)."""
        while True:
            state = self._channel.get_state(try_to_connect=True)
            self.connected = state is ChannelConnectivity.READY
            await self._channel.wait_for_state_change(state)

    async def prepare(self, claims: Iterable[ClaimInfo]) -> dict[str, Entry]:
        """What the driver says of each claim, by claim UID. Raises DriverFailed."""
        answer = cast("_Prepared", await self._call(texts.PREPARE, claims))
        return {
            uid: Entry(entry.error, tuple(_device(device) for device in entry.devices))
            for uid, entry in answer.claims.items()
        }

    async def unprepare(self, claims: Iterable[ClaimInfo]) -> dict[str, Entry]:
        """The same for claims that are not needed any more. Raises DriverFailed."""
        answer = cast("_Unprepared", await self._call(texts.UNPREPARE, claims))
        return {uid: Entry(entry.error) for uid, entry in answer.claims.items()}

    async def health(self) -> AsyncIterator[dict[Device, Report]]:
        """Every message of the health stream. Raises DriverFailed where it breaks."""
        stub: health_grpc.DRAResourceHealthAsyncStub = health_grpc.DRAResourceHealthStub(
            self._channel
        )
        stream = stub.NodeWatchResources(health_pb.NodeWatchResourcesRequest())
        try:
            async for message in stream:
                yield {
                    Device(told.device.pool_name, told.device.device_name): Report(
                        _HEALTH.get(told.health, Health.UNKNOWN),
                        told.message,
                        float(told.health_check_timeout_seconds),
                    )
                    for told in message.devices
                }
        except aio.AioRpcError as error:
            raise DriverFailed(rpc_error(error.code().name, error.details() or "")) from error
        finally:
            stream.cancel()

    async def close(self) -> None:
        """End the connection and every call on it."""
        await self._channel.close()

    async def _call(self, name: str, claims: Iterable[ClaimInfo]) -> Message:
        method, request = self._method(name, claims)
        left = within(None)
        limit = self._call_seconds if left is None else min(self._call_seconds, _SHARE * left)
        clock = asyncio.get_running_loop().time
        began = clock()
        code = "OK"
        try:
            return await method(request, timeout=limit)
        except aio.AioRpcError as error:
            code = error.code().name
            raise DriverFailed(rpc_error(code, error.details() or "")) from error
        except (aio.UsageError, asyncio.CancelledError) as error:
            code = "CANCELLED"
            # Closing the channel cancels the call, which is not the caller's cancellation.
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise DriverFailed(rpc_error(code, "the plugin is deregistered")) from error
        finally:
            path = f"/k8s.io.kubelet.pkg.apis.dra.{self.service.value.removesuffix('.DRAPlugin')}"
            self._observe(self.driver, f"{path}.DRAPlugin/{name}", code, clock() - began)

    def _method(
        self, name: str, claims: Iterable[ClaimInfo]
    ) -> tuple[Callable[..., Awaitable[Message]], object]:
        messages: Any = v1 if self.service is DriverService.V1 else v1beta1
        services: Any = v1_grpc if self.service is DriverService.V1 else v1beta1_grpc
        request = getattr(messages, f"{name}Request")(
            claims=[
                messages.Claim(namespace=info.key.namespace, uid=info.uid, name=info.key.name)
                for info in claims
            ]
        )
        method: Callable[..., Awaitable[Message]] = getattr(
            services.DRAPluginStub(self._channel), name
        )
        return method, request


def _device(device: v1.Device | v1beta1.Device) -> ClaimDevice:
    share_id = None
    if isinstance(device, v1.Device) and device.HasField("share_id"):
        share_id = device.share_id
    return ClaimDevice(
        pool=device.pool_name,
        device=device.device_name,
        share_id=share_id,
        requests=tuple(device.request_names),
        cdi_names=tuple(device.cdi_device_ids),
    )
