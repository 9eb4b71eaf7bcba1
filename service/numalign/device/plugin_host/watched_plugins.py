"""Device plugins that the plugin watcher finds: validated, connected, disconnected (DEV-8).

Separate from the watcher, which serves plugins of any type.
"""

from __future__ import annotations

from numalign.device.plugin_host import texts
from numalign.device.plugin_host.host import PluginHost
from numalign.device.ports import PluginError
from numalign.model.resource_names import is_extended
from numalign.plugins.probe import Found
from numalign.plugins.watcher import PluginRefused


class DevicePluginHandler:
    """The watcher's handler for type `DevicePlugin`: the plugin's name is its resource."""

    def __init__(self, host: PluginHost) -> None:
        self._host = host

    def validate(self, found: Found) -> None:
        """Version and name. Raises PluginRefused with the kubelet's text."""
        if texts.API_VERSION not in found.versions:
            raise PluginRefused(texts.no_common_version(found.versions))
        if not is_extended(found.name):
            raise PluginRefused(texts.invalid_watched_resource(found.name))

    async def register(self, found: Found) -> None:
        """Connect. Raises PluginRefused with the kubelet's text."""
        try:
            await self._host.connect(found.name, found.endpoint)
        except PluginError as error:
            raise PluginRefused(str(error)) from error

    async def deregister(self, found: Found) -> None:
        """Disconnect."""
        await self._host.disconnect(found.name, found.endpoint)
