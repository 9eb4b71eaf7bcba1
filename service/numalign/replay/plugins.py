"""The device plugins of a scenario as a static inventory that changes with its steps. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from numalign.model.settings import PluginPresence
from numalign.replay.recordings import Json


@dataclass(frozen=True, slots=True)
class Plugins:
    """Each resource's entry of the node, and whether its plugin is there."""

    entries: Mapping[str, Json]
    presence: Mapping[str, PluginPresence]

    @classmethod
    def of(cls, devices: Iterable[Json], presence: PluginPresence) -> Plugins:
        """The plugins of a node's `devices`, all of them as `presence` says."""
        entries = {entry["resource"]: entry for entry in devices}
        return cls(entries, dict.fromkeys(entries, presence))

    def section(self) -> list[Json]:
        """The `devices` of the configuration."""
        return [
            {**entry, "plugin": self.presence[resource].value}
            for resource, entry in self.entries.items()
        ]

    def all_are(self, presence: PluginPresence) -> Plugins:
        """Every plugin is there, or none."""
        return replace(self, presence=dict.fromkeys(self.entries, presence))

    def with_presence(self, resource: str, presence: PluginPresence) -> Plugins:
        """One plugin came or went."""
        return replace(self, presence={**self.presence, resource: presence})

    def with_devices(self, resource: str, devices: list[Json]) -> Plugins:
        """One plugin has another list of devices."""
        entry = {**self.entries[resource], "devices": devices}
        return replace(self, entries={**self.entries, resource: entry})

    def with_health(self, resource: str, device: str, healthy: bool) -> Plugins:
        """One device has another health."""
        devices = [
            {**listed, "healthy": healthy} if listed["id"] == device else listed
            for listed in self.entries[resource]["devices"]
        ]
        return self.with_devices(resource, devices)

    def with_health_turned(self, resource: str) -> Plugins:
        """Every device of one plugin has the other health."""
        devices = [
            {**listed, "healthy": not listed["healthy"]}
            for listed in self.entries[resource]["devices"]
        ]
        return self.with_devices(resource, devices)
