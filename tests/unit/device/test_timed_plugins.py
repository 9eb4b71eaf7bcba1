"""Every Allocate of a plugin is timed, also one that fails (DEV-38)."""

from __future__ import annotations

import pytest
from tests.unit.process.observed_world import samples

from numalign.device.ports import PluginError
from numalign.device.static_plugins import StaticPlugins
from numalign.device.timed_plugins import TimedPlugins
from numalign.model.ids import DeviceId
from numalign.model.settings import StaticResource
from numalign.provider.values import ContainerEdits
from numalign.telemetry.kubelet_metrics import DEVICE
from numalign.telemetry.metrics import Metrics

COUNT = "kubelet_device_plugin_alloc_duration_seconds_count"


async def test_allocations_are_timed() -> None:
    metrics = Metrics(DEVICE, enabled=True)
    configured = [
        StaticResource(resource="x/good", devices=()),
        StaticResource(resource="x/bad", devices=(), allocate_error="broken"),
    ]
    plugins = TimedPlugins(StaticPlugins(configured), metrics)
    assert await plugins.allocate("x/good", (DeviceId("a"),)) == ContainerEdits()
    with pytest.raises(PluginError, match="broken"):
        await plugins.allocate("x/bad", ())
    assert await plugins.get_preferred_allocation("x/good", (), (), 0) == ()
    await plugins.pre_start_container("x/good", ())
    page = samples(metrics.text())
    assert page[f"{COUNT}{{resource_name=x/good}}"] == 1
    assert page[f"{COUNT}{{resource_name=x/bad}}"] == 1
