"""Tells of devices that are listed in a way that makes no sense, and counts them.

Whoever hears of devices tells here: a plugin's list, or what a kubelet says of its devices.
"""

from __future__ import annotations

from collections.abc import Iterable

from numalign.device.listing import Oddity
from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics

_log = get_logger("devices")


class OddDevices:
    """Logs, and counts where metrics are served."""

    def __init__(self, metrics: Metrics) -> None:
        self._counter = metrics.counter("numalign_device_plugin_odd_devices_total")

    def told(self, resource: str, oddities: Iterable[Oddity]) -> None:
        """Devices of `resource` are odd in these ways, and were not before."""
        found = list(oddities)
        for oddity in found:
            self._counter.labels(resource, oddity.kind).inc()
        _log.warning(
            "device list has oddities", resource=resource, oddities=[odd.what for odd in found]
        )
