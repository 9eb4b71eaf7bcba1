"""Several watchers of one directory: each takes in its own plugins and leaves the others alone.

What one watcher does with plugins is tested with device plugins, over the same sockets.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from tests.unit.device.plugin_host.fake_plugin import FakePlugin, hosting, served, until

from numalign.kube.pluginregistration.v1 import api_pb2 as pr
from numalign.plugins.probe import Found
from numalign.plugins.watcher import PluginWatcher


class Taken:
    """Takes every plugin in."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def validate(self, found: Found) -> None:
        assert found.type

    async def register(self, found: Found) -> None:
        self.told.append(("registered", found.name))

    async def deregister(self, found: Found) -> None:
        self.told.append(("deregistered", found.name))


@asynccontextmanager
async def watching(directory: Path, type_: str, other: str) -> AsyncIterator[Taken]:
    taken = Taken()
    watcher = PluginWatcher(directory, {type_: taken}, tick=0.05, elsewhere=other.__eq__)
    task = asyncio.create_task(watcher.run())
    try:
        yield taken
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_each_takes_its_own() -> None:
    driver = FakePlugin(info=pr.PluginInfo(type="DRAPlugin", name="d"))
    plugin = FakePlugin(info=pr.PluginInfo(type="DevicePlugin", name="p"))
    async with hosting() as world, AsyncExitStack() as stack:
        directory = world.directory / "pr"
        directory.mkdir()
        claims = await stack.enter_async_context(watching(directory, "DRAPlugin", "DevicePlugin"))
        devices = await stack.enter_async_context(watching(directory, "DevicePlugin", "DRAPlugin"))
        async with served(driver, directory / "d"), served(plugin, directory / "p"):
            await until(lambda: bool(driver.notified and plugin.notified))
            # Whoever takes it in later, or not, has looked by then.
            await until(lambda: min(asked(driver), asked(plugin)) == 2)
            (directory / "d").unlink()
            (directory / "p").unlink()
            await until(lambda: len(claims.told) == len(devices.told) == 2)

    assert claims.told == [("registered", "d"), ("deregistered", "d")]
    assert devices.told == [("registered", "p"), ("deregistered", "p")]
    assert [each.notified for each in (driver, plugin)] == [
        [pr.RegistrationStatus(plugin_registered=True)]
    ] * 2


def asked(plugin: FakePlugin) -> int:
    return [method for method, _ in plugin.asked].count("GetInfo")
