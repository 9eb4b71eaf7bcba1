"""A driver whose devices stand in the configuration, as far as they count there.

Plugins of a scenario may name NUMA nodes that the machine does not have. A safe node refuses
such a configuration, while of a plugin it takes what makes sense; so does this.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grpc import aio

from numalign.config.settings import Compatibility, Service
from numalign.process.compatibility import strategies_of
from numalign.replay.device_lists import counted_entry
from numalign.replay.driver import Driver


class StaticDevices:
    """A driver around another one."""

    def __init__(self, driver: Driver, compatibility: Compatibility) -> None:
        self._driver = driver
        self._listed = strategies_of(compatibility).plugin_host.listed

    @property
    def state_directory(self) -> Path:
        """Where the services keep their state."""
        return self._driver.state_directory

    async def open(self, document: Mapping[str, object]) -> None:
        """Start the services. Raises as the driver does."""
        await self._driver.open(self._counted(document))

    async def reload(self, document: Mapping[str, object]) -> None:
        """Have the device service read a new document."""
        await self._driver.reload(self._counted(document))

    def channel(self, service: Service) -> aio.Channel:
        """A channel to one of the services."""
        return self._driver.channel(service)

    async def close(self) -> None:
        """Stop the services."""
        await self._driver.close()

    def _counted(self, document: Mapping[str, object]) -> dict[str, object]:
        section: dict[str, Any] = dict(document["numalign"])  # type: ignore[call-overload]  # a mapping, as in every document
        nodes = tuple(node["id"] for node in section["machine"]["numa_nodes"])
        section["devices"] = [
            counted_entry(entry, self._listed, nodes) for entry in section["devices"]
        ]
        return {**document, "numalign": section}
