"""What device plugins want in a container, handed on to the runtime in host mode only."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from grpc import StatusCode
from tests.unit.agent.nri.made_up import (
    World,
    refusal,
    with_devices,
)

from numalign.kube.nri.v1alpha1 import api_pb2 as nri
from numalign_agent.nri.wire.errors import CallFailed


async def test_devices_are_handed_out_in_host_mode() -> None:
    world = World(inject_devices=True)
    null = {"container_path": "/dev/x", "host_path": "/dev/null", "permissions": "rw"}
    mount = {"container_path": "/lib/x", "host_path": "/opt/x", "read_only": True}
    with_devices(
        world, envs={"A": "1"}, annotations={"b": "2"}, device_nodes=[null], mounts=[mount]
    )
    await world.run("a", 1)
    adjust = (await world.create("a")).adjust
    (device,) = adjust.linux.devices

    assert [(e.key, e.value) for e in adjust.env] == [("A", "1")]
    assert dict(adjust.annotations) == {"b": "2"}
    assert (device.path, device.type, device.major, device.minor) == ("/dev/x", "c", 1, 3)
    assert device.file_mode.value & 0o666
    assert [(m.destination, m.source, m.type, list(m.options)) for m in adjust.mounts] == [
        ("/lib/x", "/opt/x", "bind", ["rbind", "rprivate", "ro"])
    ]


async def test_elsewhere_devices_are_left_to_whoever_has_them() -> None:
    world = World()
    with_devices(world, envs={"A": "1"})
    await world.run("a", 1)

    assert not (await world.create("a")).adjust.env


@pytest.mark.parametrize(
    ("host_path", "why"),
    [
        pytest.param("/dev/nothing-of-this-name", "No such file or directory", id="missing"),
        pytest.param("/etc/hostname", "is no device node", id="a-file"),
    ],
)
async def test_a_device_that_is_none(host_path: str, why: str) -> None:
    world = World(inject_devices=True)
    with_devices(world, device_nodes=[{"container_path": "/dev/x", "host_path": host_path}])
    await world.run("a", 1)
    failed = await refusal(world.create("a"))

    assert failed.message == f"container app: device {host_path}: {why}"


@pytest.mark.parametrize(
    ("version", "handed_on"), [pytest.param("1.7.24", False), pytest.param("2.1.0", True)]
)
async def test_cdi_needs_a_runtime_that_takes_it(version: str, handed_on: bool) -> None:
    world = World(inject_devices=True)
    world.placing.runtime_is("containerd", version)
    with_devices(world, cdi_devices=["vendor.com/x=1"])
    await world.run("a", 1)
    if handed_on:
        adjust = (await world.create("a")).adjust
        assert [device.name for device in adjust.CDI_devices] == ["vendor.com/x=1"]
    else:
        failed = await refusal(world.create("a"))
        assert "vendor.com/x=1, which containerd 1.7.24 does not take" in failed.message


async def created(world: World) -> nri.CreateContainerResponse:
    """What a runtime is told that tries until it is told."""
    while True:
        try:
            return await world.create("a")
        except CallFailed:
            await asyncio.sleep(0)


async def test_a_container_does_not_start_without_its_devices() -> None:
    """What takes longer than the runtime waits goes on, and the next try finds it done."""
    world = World(inject_devices=True, request_timeout=0.1)
    with_devices(world, envs={"A": "1"})
    await world.run("a", 1)
    world.admission.ready.clear()
    failed = await refusal(world.create("a"))
    world.admission.ready.set()
    response = await created(world)
    await world.placing.close()

    assert world.admission.prepared == 1
    assert failed.code is StatusCode.UNAVAILABLE
    assert failed.message == "devices of container app are not ready: they are being made ready"
    assert response.adjust.env[0].key == "A"


async def test_a_missing_host_root_is_looked_below(tmp_path: Path) -> None:
    world = World(inject_devices=True, host_root=tmp_path)
    with_devices(world, device_nodes=[{"container_path": "/dev/x", "host_path": "/dev/null"}])
    await world.run("a", 1)

    assert "device /dev/null" in (await refusal(world.create("a"))).message
