"""The Registration service and the plugin watcher, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from grpc import StatusCode, aio
from tests.unit.device.plugin_host.fake_plugin import (
    GPU,
    Abort,
    FakePlugin,
    World,
    hosting,
    served,
    until,
)

from numalign.config.settings import SocketSettings
from numalign.device.plugin_host import connection
from numalign.device.plugin_host.registration import RegistrationServicer
from numalign.device.plugin_host.watched_plugins import DevicePluginHandler
from numalign.kube.deviceplugin.v1beta1 import api_pb2 as dp
from numalign.kube.deviceplugin.v1beta1 import api_pb2_grpc as dp_grpc
from numalign.kube.pluginregistration.v1 import api_pb2 as pr
from numalign.plugins.watcher import PluginWatcher
from numalign.rpc.methods import Registration
from numalign.rpc.server import ServiceServer


@asynccontextmanager
async def registry(world: World) -> AsyncIterator[dp_grpc.RegistrationAsyncStub]:
    servicer = RegistrationServicer(world.host, world.directory, world.listener)
    server = ServiceServer(
        (Registration(dp_grpc.add_RegistrationServicer_to_server, servicer),),
        world.directory / "kubelet.sock",
        SocketSettings(),
    )
    await server.start()
    try:
        async with aio.insecure_channel(f"unix:{world.directory}/kubelet.sock") as channel:
            yield dp_grpc.RegistrationStub(channel)
    finally:
        await server.stop(0)


def request(version: str = "v1beta1", endpoint: str = "p", name: str = GPU) -> dp.RegisterRequest:
    return dp.RegisterRequest(version=version, endpoint=endpoint, resource_name=name)


async def test_register_returns_when_the_plugin_is_connected() -> None:
    plugin = FakePlugin()
    async with (
        hosting() as world,
        served(plugin, world.directory / "p"),
        registry(world) as kubelet,
    ):
        answer = await kubelet.Register(request(), timeout=60)

        assert answer == dp.Empty()
        assert world.kinds() == ["Registered"]
        assert world.listener.told == [("asked", GPU), ("connected", GPU, "p")]


@pytest.mark.parametrize(
    ("asked", "details"),
    [
        pytest.param(
            request(version="v2"),
            'requested API version "v2" is not supported by kubelet. Supported version is '
            '["v1beta1"]',
            id="version",
        ),
        pytest.param(request(name="gpu"), 'the ResourceName "gpu" is invalid', id="name"),
        pytest.param(
            request(endpoint="nobody"),
            "failed to dial device plugin: context deadline exceeded",
            id="socket",
        ),
    ],
)
async def test_register_refuses_with_code_unknown(
    asked: dp.RegisterRequest, details: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "DIAL_SECONDS", 0.2)
    async with hosting() as world, registry(world) as kubelet:
        with pytest.raises(aio.AioRpcError) as refused:
            await kubelet.Register(asked, timeout=60)

    assert (refused.value.code(), refused.value.details()) == (StatusCode.UNKNOWN, details)
    assert world.listener.told == [
        ("asked", asked.resource_name),
        ("refused", asked.resource_name, details),
    ]


@pytest.mark.parametrize("endpoint", ["../p", "outside"], ids=["dots", "link"])
async def test_register_refuses_a_socket_that_is_elsewhere(endpoint: str) -> None:
    async with hosting() as world, registry(world) as kubelet:
        directory = world.directory.resolve()
        (directory / "outside").symlink_to("/run/elsewhere.sock")
        with pytest.raises(aio.AioRpcError) as refused:
            await kubelet.Register(request(endpoint=endpoint), timeout=60)

    details = f"endpoint: must be below {world.directory}"
    assert (refused.value.code(), refused.value.details()) == (StatusCode.UNKNOWN, details)
    assert world.listener.told == [("asked", GPU), ("refused", GPU, details)]


@asynccontextmanager
async def watching(world: World) -> AsyncIterator[Path]:
    directory = world.directory / "pr"
    directory.mkdir()
    handlers = {"DevicePlugin": DevicePluginHandler(world.host)}
    task = asyncio.create_task(PluginWatcher(directory, handlers, tick=0.05).run())
    try:
        yield directory
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_socket_is_found_and_let_go() -> None:
    plugin = FakePlugin()
    async with (
        hosting() as world,
        watching(world) as directory,
        served(plugin, directory / "p"),
    ):
        await until(lambda: bool(plugin.notified))
        assert plugin.notified == [pr.RegistrationStatus(plugin_registered=True)]
        assert world.kinds() == ["Registered"]
        (directory / "p").unlink()
        await until(lambda: "Disconnected" in world.kinds())

    assert world.kinds() == ["Registered", "Disconnected"]
    assert ("asked", GPU) not in world.listener.told


async def test_a_socket_made_anew_is_taken_in_again() -> None:
    first, second = FakePlugin(), FakePlugin()
    async with hosting() as world, watching(world) as directory:
        async with served(first, directory / "p"):
            await until(lambda: bool(first.notified))
        async with served(second, directory / "p"):
            await until(lambda: bool(second.notified))

    assert world.kinds()[0] == "Registered"
    assert world.kinds()[-1] == "Registered"


async def test_an_endpoint_beside_the_registration_socket() -> None:
    plugin, elsewhere = FakePlugin(), FakePlugin()
    async with (
        hosting() as world,
        served(elsewhere, world.directory / "service"),
        watching(world) as directory,
    ):
        plugin.info.endpoint = str(world.directory / "service")
        async with served(plugin, directory / "p"):
            await until(lambda: bool(elsewhere.lists))

    assert [method for method, _ in plugin.asked] == ["GetInfo", "NotifyRegistrationStatus"]


@pytest.mark.parametrize(
    ("info", "error"),
    [
        pytest.param(
            pr.PluginInfo(type="CSIPlugin", name="csi"),
            "RegisterPlugin error -- no handler registered for plugin type: CSIPlugin at socket "
            "{path}",
            id="type",
        ),
        pytest.param(
            pr.PluginInfo(type="DevicePlugin", name=GPU, supported_versions=["v1", "v2"]),
            "RegisterPlugin error -- plugin validation failed with err: manager version, v1beta1, "
            "is not among plugin supported versions [v1 v2]",
            id="version",
        ),
        pytest.param(
            pr.PluginInfo(type="DevicePlugin", name="gpu", supported_versions=["v1beta1"]),
            "RegisterPlugin error -- plugin validation failed with err: invalid name of device "
            'plugin socket: the ResourceName "gpu" is invalid',
            id="name",
        ),
    ],
)
async def test_a_found_plugin_is_told_why_it_is_refused(info: pr.PluginInfo, error: str) -> None:
    plugin = FakePlugin(info=info)
    async with hosting() as world, watching(world) as directory:
        async with served(plugin, directory / "p"):
            await until(lambda: bool(plugin.notified))
        expected = error.format(path=directory / "p")

    assert plugin.notified[0] == pr.RegistrationStatus(error=expected)
    assert world.reported == []


async def test_a_found_plugin_that_fails_is_asked_again_later() -> None:
    failures = [True]

    async def fail_once() -> None:
        if failures:
            failures.pop()
            raise Abort(StatusCode.INTERNAL, "not yet")

    plugin = FakePlugin(before={"GetDevicePluginOptions": fail_once})
    async with (
        hosting() as world,
        watching(world) as directory,
        served(plugin, directory / "p"),
    ):
        await until(lambda: len(plugin.notified) == 2)

        assert plugin.notified[0].error == (
            "RegisterPlugin error -- plugin registration failed with err: failed to get device "
            "plugin options: rpc error: code = Internal desc = not yet"
        )
        assert plugin.notified[1].plugin_registered
        assert world.kinds() == ["Registered"]


async def test_a_plugin_that_does_not_take_the_good_news_is_let_go() -> None:
    async def fail() -> None:
        raise Abort(StatusCode.INTERNAL, "deaf")

    plugin = FakePlugin(before={"NotifyRegistrationStatus": fail})
    async with (
        hosting() as world,
        watching(world) as directory,
        served(plugin, directory / "p"),
    ):
        await until(lambda: "Disconnected" in world.kinds())

    assert world.kinds()[:2] == ["Registered", "Disconnected"]
