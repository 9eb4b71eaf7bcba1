"""When a service is ready: its socket answers earlier, but what it needs may still be to come.

Health says "serving" of the process as a whole as soon as it listens (what a liveness probe
asks), and of a service by name once it is ready (what a readiness probe asks).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from numalign.process.part import Part

ADMISSION = "numalign.v1.Admission"
TOPOLOGY_MANAGER = "numalign.v1.TopologyManager"

_ASK_AGAIN_SECONDS = 0.1
_ANSWER_SECONDS = 1.0


async def topology_serves(channel: aio.Channel) -> None:
    """Wait until the Topology Manager behind `channel` says that it is ready."""
    await serves(channel, TOPOLOGY_MANAGER)


async def serves(channel: aio.Channel, service: str) -> None:
    """Wait until the server behind `channel` says of `service` that it is ready."""
    stub = health_pb2_grpc.HealthStub(channel)
    request = health_pb2.HealthCheckRequest(service=service)
    while True:
        try:
            answer = await stub.Check(request, timeout=_ANSWER_SECONDS)
        except aio.AioRpcError:
            # Not there yet, which is the very thing that is waited for.
            answer = None
        if answer is not None and answer.status == health_pb2.HealthCheckResponse.SERVING:
            return
        await asyncio.sleep(_ASK_AGAIN_SECONDS)


async def serve_when_ready(part: Part, set_serving: Callable[[bool], None]) -> None:
    """Begin what the part does by itself, and say that it serves once it is ready."""
    await part.serving()
    await part.ready()
    set_serving(True)
