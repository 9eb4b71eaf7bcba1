"""Device plugins whose Allocate is timed, under the kubelet's name (DEV-38).

Separate from the plugins, of which there are several kinds, and from the engine, which knows
no clock. Put around the plugins where metrics are served.
"""

from __future__ import annotations

import time

from numalign.device.ports import DevicePlugins
from numalign.model.ids import DeviceId
from numalign.provider.values import ContainerEdits
from numalign.telemetry.metrics import Metrics


class TimedPlugins:
    """Answers as `plugins` do."""

    def __init__(self, plugins: DevicePlugins, metrics: Metrics) -> None:
        self._plugins = plugins
        self._seconds = metrics.histogram("kubelet_device_plugin_alloc_duration_seconds")

    @property
    def has_effects(self) -> bool:
        """Whether an Allocate cannot be undone."""
        return self._plugins.has_effects

    async def get_preferred_allocation(
        self,
        resource: str,
        available: tuple[DeviceId, ...],
        must_include: tuple[DeviceId, ...],
        size: int,
    ) -> tuple[DeviceId, ...]:
        """The ids that the plugin would rather see taken."""
        return await self._plugins.get_preferred_allocation(resource, available, must_include, size)

    async def allocate(self, resource: str, ids: tuple[DeviceId, ...]) -> ContainerEdits:
        """What one container needs for `ids`; timed also where the plugin refuses."""
        started = time.perf_counter()
        try:
            return await self._plugins.allocate(resource, ids)
        finally:
            self._seconds.labels(resource).observe(time.perf_counter() - started)

    async def pre_start_container(self, resource: str, ids: tuple[DeviceId, ...]) -> None:
        """Have the plugin make `ids` ready."""
        await self._plugins.pre_start_container(resource, ids)
