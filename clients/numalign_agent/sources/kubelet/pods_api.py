"""Pods from the kubelet's pods interface, `v1alpha1.Pods` on its socket.

What comes are bytes; of them the fields are kept that this project's v1.Pod knows. Beside a
kubelet nothing else is needed: it is the kubelet that runs the pods.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from google.protobuf.message import DecodeError
from grpc import aio

from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_json import pod_to_json
from numalign.kube.pods.v1alpha1 import api_pb2, api_pb2_grpc
from numalign.rpc.channel import open_channel
from numalign.telemetry.logs import get_logger
from numalign_agent.backoff import Backoff
from numalign_agent.pod import AgentPod
from numalign_agent.sources.kubelet import NAME
from numalign_agent.sources.port import Deliver
from numalign_agent.trouble import Troubles

_log = get_logger("agent.sources.kubelet")


class NotAKubelet(ValueError):
    """What came over the socket is not what a kubelet says."""


class KubeletPodsApi:
    """Follows the pods that the kubelet behind `socket` has."""

    name = NAME

    def __init__(self, socket: Path, backoff: Backoff | None = None) -> None:
        self._socket = socket
        self._backoff = backoff or Backoff(0.5, 20.0)
        self._troubles = Troubles(_log)

    def problems(self) -> Mapping[str, str]:
        """Why the kubelet does not tell its pods at present."""
        return self._troubles.current()

    async def run(self, deliver: Deliver) -> None:
        """Follow until cancelled; while the kubelet is away the last known pods stay."""
        place = str(self._socket)
        async with open_channel(self._socket) as channel:
            while True:
                try:
                    await self._follow(api_pb2_grpc.PodsStub(channel), deliver)
                except aio.AioRpcError as error:
                    self._troubles.say(place, f"{error.code().name}: {error.details()}")
                except NotAKubelet as error:
                    self._troubles.say(place, str(error))
                await asyncio.sleep(self._backoff.failed())

    async def _follow(self, stub: api_pb2_grpc.PodsAsyncStub, deliver: Deliver) -> None:
        pods: dict[str, AgentPod] = {}
        is_complete = False
        async for event in _events(stub):
            match event.type:
                case api_pb2.ADDED | api_pb2.MODIFIED:
                    pod = _pod(event.pod)
                    pods[pod.uid] = pod
                case api_pb2.DELETED:
                    pods.pop(_pod(event.pod).uid, None)
                case api_pb2.INITIAL_SYNC_COMPLETE:
                    is_complete = True
                    self._backoff.succeeded()
                    self._troubles.mended(str(self._socket))
                case other:
                    raise NotAKubelet(f"event of unknown type {other}")
            if is_complete:
                await deliver(tuple(pods.values()))


async def _events(stub: api_pb2_grpc.PodsAsyncStub) -> AsyncIterator[api_pb2.WatchPodsEvent]:
    call = stub.WatchPods(api_pb2.WatchPodsRequest())
    try:
        async for event in call:
            yield event
    finally:
        call.cancel()


def _pod(data: bytes) -> AgentPod:
    try:
        return AgentPod(pod_to_json(core_pb2.Pod.FromString(data)))
    except (DecodeError, ValueError) as error:
        raise NotAKubelet(f"what came is no pod: {error}") from error
