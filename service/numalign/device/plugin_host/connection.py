"""The connection to one device plugin: every call of the interface, with its deadline.

Separate from the host, which knows which connection serves which resource. Failures come out
as `PluginError` in the words of a kubelet, whose gRPC library is Go's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf.message import Message
from grpc import StatusCode, aio

from numalign.device.inventory import PluginOptions
from numalign.device.plugin_host import texts, wire
from numalign.device.ports import EmptyAllocation, PluginError
from numalign.kube.deviceplugin.v1beta1 import api_pb2 as dp
from numalign.kube.deviceplugin.v1beta1 import api_pb2_grpc as dp_grpc
from numalign.model.ids import DeviceId
from numalign.plugins.texts import rpc_error
from numalign.provider.values import ContainerEdits
from numalign.rpc.channel import socket_target
from numalign.rpc.deadline import within

DIAL_SECONDS = 10.0
"""How long a plugin's socket may take to answer (DEV-10)."""

PRE_START_SECONDS = 30.0
"""How long a plugin may make devices ready, which is no part of an admission (DEV-35)."""

IMPATIENT_SECONDS = 0.5
"""How long one that has just hung may take: the whole node waits for it, others' pods as well."""

FORGIVEN_SECONDS = 30.0
"""When it may take as long as any other again, if it has not answered in time before."""

_SHARE = 0.9
"""Part of an admission's time that a plugin may take, so that its failure is still told."""

_OPTIONS: tuple[tuple[str, Any], ...] = (
    ("grpc.default_authority", "localhost"),
    ("grpc.max_receive_message_length", 16 << 20),
    ("grpc.enable_http_proxy", 0),
    # What one that floods its list has sent ahead must not grow old here.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # A plugin that comes back at the same path is another plugin.
    ("grpc.use_local_subchannel_pool", 1),
)

_LIST_AND_WATCH = "/v1beta1.DevicePlugin/ListAndWatch"

Answer = TypeVar("Answer", bound=Message)


class ConnectError(PluginError):
    """A plugin cannot be connected to; the message is the kubelet's (DEV-10)."""


class PluginConnection:
    """A plugin of `resource` at `socket`. `timeout` is what an admission allows a provider.

    Open it once with `open`; after `close` every call fails as one to a stopped endpoint.
    """

    def __init__(self, resource: str, socket: Path, timeout: float) -> None:
        self.resource = resource
        self.socket = socket
        self._timeout = timeout
        self._closed = asyncio.Event()
        self._impatient_until = 0.0
        self._channel = aio.insecure_channel(socket_target(socket), options=_OPTIONS)
        self._stub: dp_grpc.DevicePluginAsyncStub = dp_grpc.DevicePluginStub(self._channel)

    async def open(self) -> PluginOptions:
        """Wait until the plugin answers; the calls it wants. Raises ConnectError (DEV-10)."""
        try:
            async with asyncio.timeout(DIAL_SECONDS):
                await self._channel.channel_ready()
        except TimeoutError as error:
            raise ConnectError(texts.dial_failed("context deadline exceeded")) from error
        try:
            options = await self._call(
                "GetDevicePluginOptions", self._stub.GetDevicePluginOptions, dp.Empty(), None
            )
        except PluginError as error:
            raise ConnectError(texts.options_failed(str(error))) from error
        return wire.options_from_message(options)

    async def lists(self) -> AsyncIterator[bytes]:
        """Every device list, still serialised. Raises PluginError when the stream breaks."""
        method: aio.UnaryStreamMultiCallable[dp.Empty, bytes] = self._channel.unary_stream(
            _LIST_AND_WATCH, request_serializer=dp.Empty.SerializeToString
        )
        stream = method(dp.Empty())
        try:
            async for data in stream:
                yield data
        except aio.AioRpcError as error:
            raise PluginError(rpc_error(error.code().name, error.details() or "")) from error
        finally:
            stream.cancel()

    async def get_preferred_allocation(
        self, available: tuple[DeviceId, ...], must_include: tuple[DeviceId, ...], size: int
    ) -> tuple[DeviceId, ...]:
        """The ids that the plugin prefers; none where it answers for no container (DEV-33)."""
        request = wire.preferred_request(available, must_include, size)
        response = await self._call(
            "GetPreferredAllocation", self._stub.GetPreferredAllocation, request, None
        )
        if not response.container_responses:
            return ()
        return tuple(DeviceId(id_) for id_ in response.container_responses[0].deviceIDs)

    async def allocate(self, ids: tuple[DeviceId, ...]) -> ContainerEdits:
        """What one container needs for `ids`; what is said of further ones is ignored (DEV-39).

        Raises PluginError, EmptyAllocation where the plugin answers for no container.
        """
        request = wire.allocate_request(ids)
        response = await self._call("Allocate", self._stub.Allocate, request, None)
        if not response.container_responses:
            raise EmptyAllocation(str(response).strip())
        return wire.edits_from_message(response.container_responses[0])

    async def pre_start_container(self, ids: tuple[DeviceId, ...]) -> None:
        """Have the plugin make `ids` ready (DEV-41)."""
        request = dp.PreStartContainerRequest(devices_ids=ids)
        await self._call(
            "PreStartContainer", self._stub.PreStartContainer, request, PRE_START_SECONDS
        )

    async def close(self) -> None:
        """End the connection and every call on it; closing again does nothing."""
        if not self._closed.is_set():
            self._closed.set()
            await self._channel.close()

    async def _call(
        self,
        name: str,
        method: Callable[..., Awaitable[Answer]],
        request: Message,
        own_limit: float | None,
    ) -> Answer:
        if self._closed.is_set():
            raise PluginError(texts.stopped(self.resource))
        left = within(None if own_limit is not None else self._timeout)
        limits = [own_limit, None if left is None else _SHARE * left]
        limit = min(seconds for seconds in limits if seconds is not None)
        clock = asyncio.get_running_loop().time
        started = clock()
        impatient = own_limit is None and started < self._impatient_until
        if impatient:
            limit = min(limit, IMPATIENT_SECONDS)
        try:
            answer = await method(request, timeout=limit)
        except aio.AioRpcError as error:
            late = error.code() is StatusCode.DEADLINE_EXCEEDED and clock() - started >= limit
            if late and limit != own_limit:
                if not impatient and limit >= IMPATIENT_SECONDS:
                    self._impatient_until = clock() + FORGIVEN_SECONDS
                raise PluginError(texts.too_late(self.resource, name, limit)) from error
            details = "context deadline exceeded" if late else error.details() or ""
            raise PluginError(rpc_error(error.code().name, details)) from error
        except (aio.UsageError, asyncio.CancelledError) as error:
            # Closing the channel cancels the call, which is not the caller's cancellation.
            task = asyncio.current_task()
            if not self._closed.is_set() or (task is not None and task.cancelling()):
                raise
            raise PluginError(texts.stopped(self.resource)) from error
        if impatient:
            self._impatient_until = 0.0
        return answer
