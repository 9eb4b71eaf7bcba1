"""Drivers over real sockets: both versions, those that hang or go, and which of two is asked."""

# ruff: noqa: ARG002, N802 - names and arguments are those of the interface

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from grpc import aio
from tests.unit.dra.dra_values import A, info

from numalign.dra.driver_connection import DriverConnection, DriverFailed
from numalign.dra.drivers import Drivers
from numalign.dra.health import Device, Health, Report
from numalign.dra.values import ClaimProblem
from numalign.dra.versions import DriverService
from numalign.kube.dra.health.v1alpha1 import api_pb2 as hb
from numalign.kube.dra.health.v1alpha1 import api_pb2_grpc as hb_grpc
from numalign.kube.dra.v1 import api_pb2 as v1
from numalign.kube.dra.v1 import api_pb2_grpc as v1_grpc
from numalign.kube.dra.v1beta1 import api_pb2 as v1beta1
from numalign.kube.dra.v1beta1 import api_pb2_grpc as v1beta1_grpc

CLAIMS = (info("c1", A),)
MESSAGES: dict[DriverService, Any] = {DriverService.V1: v1, DriverService.V1BETA1: v1beta1}
SERVICES: dict[DriverService, Any] = {
    DriverService.V1: v1_grpc,
    DriverService.V1BETA1: v1beta1_grpc,
}


class Driver:
    """Says one device of every claim; `hangs` never answers."""

    def __init__(self, service: DriverService, *, hangs: bool = False) -> None:
        self._messages = MESSAGES[service]
        self._hangs = hangs

    async def NodePrepareResources(self, request: Any, context: Any) -> Any:
        if self._hangs:
            await asyncio.sleep(60)
        answer = self._messages.NodePrepareResourcesResponse()
        for claim in request.claims:
            device = answer.claims[claim.uid].devices.add(
                request_names=["r"],
                pool_name=claim.namespace,
                device_name=claim.name,
                cdi_device_ids=["d/x=1", "d/x=2"],
            )
            if hasattr(device, "share_id"):
                device.share_id = "s"
        return answer

    async def NodeUnprepareResources(self, request: Any, context: Any) -> Any:
        answer = self._messages.NodeUnprepareResourcesResponse()
        for claim in request.claims:
            answer.claims[claim.uid].error = "busy"
        return answer


class Wellness(hb_grpc.DRAResourceHealthServicer):
    """Says once that one device is ill."""

    async def NodeWatchResources(
        self, request: hb.NodeWatchResourcesRequest, context: Any
    ) -> AsyncIterator[hb.NodeWatchResourcesResponse]:
        device = hb.DeviceIdentifier(pool_name="p", device_name="x")
        yield hb.NodeWatchResourcesResponse(
            devices=[
                hb.DeviceHealth(
                    device=device,
                    health=hb.UNHEALTHY,
                    health_check_timeout_seconds=7,
                    message="hot",
                )
            ]
        )


@pytest.fixture(name="directory")
def short_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="na-") as made:
        yield Path(made)


@asynccontextmanager
async def served(
    path: Path, service: DriverService = DriverService.V1, *, hangs: bool = False
) -> AsyncIterator[aio.Server]:
    server = aio.server()
    SERVICES[service].add_DRAPluginServicer_to_server(Driver(service, hangs=hangs), server)
    hb_grpc.add_DRAResourceHealthServicer_to_server(Wellness(), server)
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    try:
        yield server
    finally:
        await server.stop(0)


@asynccontextmanager
async def connected(
    path: Path, service: DriverService = DriverService.V1, seconds: float = 5.0
) -> AsyncIterator[tuple[DriverConnection, list[tuple[str, str, str]]]]:
    calls: list[tuple[str, str, str]] = []
    plugin = DriverConnection(
        "d", path, service, (), seconds, lambda d, m, c, _: calls.append((d, m, c))
    )
    try:
        yield plugin, calls
    finally:
        await plugin.close()


@pytest.mark.parametrize("service", DriverService)
async def test_both_versions(directory: Path, service: DriverService) -> None:
    path = directory / "d.sock"
    async with served(path, service), connected(path, service) as (plugin, calls):
        prepared = await plugin.prepare(CLAIMS)
        unprepared = await plugin.unprepare(CLAIMS)

    (device,) = prepared["u-c1"].devices
    version = service.value.removesuffix(".DRAPlugin")
    assert (device.pool, device.device, device.requests) == ("ns", "c1", ("r",))
    assert device.cdi_names == ("d/x=1", "d/x=2")
    assert device.share_id == ("s" if service is DriverService.V1 else None)
    assert unprepared["u-c1"].error == "busy"
    assert calls == [
        ("d", f"/k8s.io.kubelet.pkg.apis.dra.{version}.DRAPlugin/{name}", "OK")
        for name in ("NodePrepareResources", "NodeUnprepareResources")
    ]


async def test_a_driver_that_hangs(directory: Path) -> None:
    path = directory / "d.sock"
    async with served(path, hangs=True), connected(path, seconds=0.2) as (plugin, calls):
        with pytest.raises(DriverFailed) as failed:
            await plugin.prepare(CLAIMS)

    assert str(failed.value).startswith("rpc error: code = DeadlineExceeded desc = ")
    assert calls[0][2] == "DEADLINE_EXCEEDED"


async def test_a_driver_that_is_not_there(directory: Path) -> None:
    async with connected(directory / "d.sock") as (plugin, _):
        with pytest.raises(DriverFailed, match="rpc error: code = Unavailable"):
            await plugin.prepare(CLAIMS)


async def test_a_driver_that_speaks_another_version(directory: Path) -> None:
    path = directory / "d.sock"
    async with (
        served(path, DriverService.V1BETA1),
        connected(path, DriverService.V1) as (plugin, _),
    ):
        with pytest.raises(DriverFailed, match="rpc error: code = Unimplemented"):
            await plugin.prepare(CLAIMS)


async def test_the_health_of_devices(directory: Path) -> None:
    path = directory / "d.sock"
    async with served(path), connected(path) as (plugin, _):
        told = [reports async for reports in plugin.health()]

    assert told == [{Device("p", "x"): Report(Health.UNHEALTHY, "hot", 7.0)}]


@asynccontextmanager
async def no_drivers() -> AsyncIterator[Drivers]:
    async def follow(plugin: DriverConnection) -> None:
        await asyncio.sleep(60)

    drivers = Drivers(5.0, lambda *_: None, follow)
    try:
        yield drivers
    finally:
        await drivers.close()


async def until_connected(drivers: Drivers, *endpoints: str) -> None:
    async with asyncio.timeout(60):
        while {p.endpoint.name for p in drivers.all() if p.connected} != set(endpoints):  # noqa: ASYNC110 - no event says it
            await asyncio.sleep(0.01)


async def test_the_newest_that_answers_is_asked(directory: Path) -> None:
    """DRA-8: a driver that is replaced has two plugins for a while."""
    old, new = directory / "old", directory / "new"
    async with no_drivers() as drivers:
        drivers.add("d", old, ["v1.DRAPlugin"])
        drivers.add("d", new, ["v1.DRAPlugin"])
        neither = drivers.plugin_of("d").endpoint
        async with served(old):
            await until_connected(drivers, "old")
            first = drivers.plugin_of("d").endpoint
            async with served(new):
                await until_connected(drivers, "old", "new")
                second = drivers.plugin_of("d").endpoint
            await until_connected(drivers, "old")
            again = drivers.plugin_of("d").endpoint

    assert (neither, first, second, again) == (new, old, new, old)


async def test_a_plugin_is_known_by_driver_and_endpoint(directory: Path) -> None:
    async with no_drivers() as drivers:
        drivers.add("d", directory / "x", ["v1.DRAPlugin"])
        with pytest.raises(ClaimProblem) as twice:
            drivers.add("d", directory / "x", ["v1.DRAPlugin"])
        await drivers.remove("d", directory / "y")
        before = drivers.is_registered("d")
        await drivers.remove("d", directory / "x")

        assert (before, drivers.is_registered("d")) == (True, False)
        with pytest.raises(ClaimProblem, match="DRA driver d is not registered"):
            drivers.plugin_of("d")

    assert str(twice.value) == (
        f"endpoint {directory}/x already registered for DRA driver plugin d"
    )
