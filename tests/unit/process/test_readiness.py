"""A service says that it serves once it is ready, and not before."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from grpc_health.v1 import health_pb2, health_pb2_grpc

from numalign.config.settings import Service
from numalign.process.part import Part
from numalign.process.readiness import TOPOLOGY_MANAGER, serve_when_ready, topology_serves
from numalign.rpc.health import HealthServicer
from numalign.rpc.local import LocalChannel, LocalServer
from numalign.rpc.methods import Registration

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


async def status(health: HealthServicer, name: str) -> int:
    """What health says of a service."""
    answer = await health.Check(health_pb2.HealthCheckRequest(service=name), cast("Any", None))
    return int(answer.status)


async def test_a_held_service_serves_only_when_it_is_told_so_by_name() -> None:
    health = HealthServicer(("a", "b"))
    health.hold("a")

    health.set_serving(True)

    assert [await status(health, name) for name in ("", "a", "b")] == [
        SERVING,
        NOT_SERVING,
        SERVING,
    ]
    health.set_serving(True, "a")
    assert await status(health, "a") == SERVING
    health.stop()
    assert await status(health, "a") == NOT_SERVING


async def test_a_part_serves_when_it_is_ready() -> None:
    order: list[str] = []
    there = asyncio.Event()

    async def serving() -> None:
        order.append("serving")

    part = Part(
        service=Service.CPU,
        registration=cast("Registration", None),
        health_name="cpu",
        serving=serving,
        ready=lambda: cast("Any", there.wait()),
    )
    waiting = asyncio.create_task(serve_when_ready(part, lambda on: order.append(f"health {on}")))
    await asyncio.sleep(0.01)
    assert order == ["serving"]

    there.set()
    await waiting

    assert order == ["serving", "health True"]


async def test_admission_waits_for_the_topology_manager() -> None:
    health = HealthServicer((TOPOLOGY_MANAGER,))
    server = LocalServer()
    server.add([Registration(health_pb2_grpc.add_HealthServicer_to_server, health)])
    waiting = asyncio.create_task(topology_serves(LocalChannel(server)))
    await asyncio.sleep(0.15)
    assert not waiting.done()

    health.set_serving(True)

    await asyncio.wait_for(waiting, 60)
