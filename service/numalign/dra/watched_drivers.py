"""DRA drivers that the plugin watcher finds: validated, taken in, let go (DRA-3)."""

from __future__ import annotations

from numalign.dra.drivers import Drivers, check_plugin
from numalign.dra.values import ClaimProblem
from numalign.plugins.probe import Found
from numalign.plugins.watcher import PluginRefused


class DraPluginHandler:
    """The watcher's handler for that type: the plugin's name is its driver's."""

    def __init__(self, drivers: Drivers) -> None:
        self._drivers = drivers

    def validate(self, found: Found) -> None:
        """Name and services. Raises PluginRefused with the kubelet's text."""
        try:
            check_plugin(found.name, found.endpoint, found.versions)
        except ClaimProblem as problem:
            raise PluginRefused(str(problem)) from problem

    async def register(self, found: Found) -> None:
        """Take it in. Raises PluginRefused with the kubelet's text."""
        try:
            self._drivers.add(found.name, found.endpoint, found.versions)
        except ClaimProblem as problem:
            raise PluginRefused(str(problem)) from problem

    async def deregister(self, found: Found) -> None:
        """Let it go."""
        await self._drivers.remove(found.name, found.endpoint)
