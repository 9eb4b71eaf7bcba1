"""The door to the device plugins: what the deciding part asks of them.

The engine awaits these calls and knows nothing of sockets. One implementation answers from
a static inventory, another speaks the device plugin protocol.
"""

from __future__ import annotations

from typing import Protocol

from numalign.model.ids import DeviceId
from numalign.provider.values import ContainerEdits


class PluginError(Exception):
    """A plugin call failed; the message is what the plugin or its connection said."""


class EmptyAllocation(PluginError):
    """Allocate succeeded but held no container response; `response` is its printed form."""

    def __init__(self, response: str) -> None:
        super().__init__(f"no containers return in allocation response {response}")


class DevicePlugins(Protocol):
    """All device plugins of the node, addressed by the resource that each serves.

    `has_effects` says whether an Allocate does something outside that cannot be undone. Where
    it does, nobody else may be left who could still refuse the pod.
    """

    @property
    def has_effects(self) -> bool:
        """Whether an Allocate cannot be undone."""

    async def get_preferred_allocation(
        self,
        resource: str,
        available: tuple[DeviceId, ...],
        must_include: tuple[DeviceId, ...],
        size: int,
    ) -> tuple[DeviceId, ...]:
        """The ids that the plugin would rather see taken, `size` of `available` (DEV-33).

        `available` holds `must_include`; both are ascending. No container response is the
        empty answer. Raises PluginError.
        """

    async def allocate(self, resource: str, ids: tuple[DeviceId, ...]) -> ContainerEdits:
        """Tell the plugin that one container gets `ids` (ascending); what it needs (DEV-38).

        Raises PluginError, EmptyAllocation where the answer holds no container response.
        """

    async def pre_start_container(self, resource: str, ids: tuple[DeviceId, ...]) -> None:
        """Have the plugin make `ids` ready, right before the container starts (DEV-41).

        Raises PluginError.
        """
