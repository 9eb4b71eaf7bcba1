"""What the plugin host counts and tells of plugins, apart from the calls that are timed.

Separate from the host so that tests can listen, and so that the names of metrics stand in one
place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from numalign.device.listing import Oddity
from numalign.device.observer import OddDevices
from numalign.model.ids import PodUid
from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics

_log = get_logger("device-plugins")


class HostObserver(Protocol):
    """Hears what happens to plugins."""

    def asked_to_register(self, resource: str) -> None:
        """A plugin called Register, rightly or wrongly (DEV-7)."""

    def refused(self, resource: str, why: str) -> None:
        """A plugin was not taken in."""

    def connected(self, resource: str, socket: str) -> None:
        """A plugin was connected to."""

    def disconnected(self, resource: str, socket: str, why: str) -> None:
        """A plugin is gone, or no longer the one of its resource."""

    def odd_list(self, resource: str, oddities: Iterable[Oddity]) -> None:
        """A plugin's list holds what makes no sense, and did not before."""

    def health_changed(self, pods: frozenset[PodUid]) -> None:
        """Devices that these pods hold changed their health (DEV-15)."""


class PluginObserver:
    """Logs, and counts where metrics are served."""

    def __init__(self, metrics: Metrics) -> None:
        self._registrations = metrics.counter("kubelet_device_plugin_registration_total")
        self._odd_devices = OddDevices(metrics)

    def asked_to_register(self, resource: str) -> None:
        """Count it, before it is looked at."""
        self._registrations.labels(resource).inc()

    def refused(self, resource: str, why: str) -> None:
        """Say why."""
        _log.warning("device plugin refused", resource=resource, why=why)

    def connected(self, resource: str, socket: str) -> None:
        """Say who is there."""
        _log.info("device plugin connected", resource=resource, socket=socket)

    def disconnected(self, resource: str, socket: str, why: str) -> None:
        """Say who is gone."""
        _log.warning("device plugin disconnected", resource=resource, socket=socket, why=why)

    def odd_list(self, resource: str, oddities: Iterable[Oddity]) -> None:
        """Name each, and count by kind."""
        self._odd_devices.told(resource, oddities)

    def health_changed(self, pods: frozenset[PodUid]) -> None:
        """Name the pods."""
        _log.info("health of held devices changed", pods=sorted(pods))
