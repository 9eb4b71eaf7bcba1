"""Hint providers of others that the plugin watcher finds by their sockets.

They need not know where the Topology Manager listens, nor notice when it restarts: it finds them
again at once, as a kubelet finds its plugins. One whose socket is gone stays registered, like one
that has registered itself: it is down, and what it holds is still its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from numalign.errors import NumalignError
from numalign.plugins.probe import Found
from numalign.plugins.types import HINT_PROVIDER_TYPE
from numalign.plugins.watcher import PluginRefused, PluginWatcher
from numalign.telemetry.logs import get_logger
from numalign.topology.provider_handle import ProviderDown, ProviderHandle
from numalign.v1 import topology_pb2 as tm

VERSION = "v1"
"""The version of `numalign.v1.HintProvider`."""

Register = Callable[[tm.RegisterHintProviderRequest], Awaitable[ProviderHandle]]

_log = get_logger("topology")


class HintProviderHandler:
    """The watcher's handler for that type. `register` raises as that of the registrations does."""

    def __init__(self, register: Register) -> None:
        self._register = register

    def validate(self, found: Found) -> None:
        """Name and version. Raises PluginRefused."""
        if not found.name:
            raise PluginRefused("name: Required value")
        if VERSION not in found.versions:
            offered = ", ".join(found.versions) or "none"
            raise PluginRefused(f'supported_versions: "{VERSION}" is not among them ({offered})')

    async def register(self, found: Found) -> None:
        """Take it in, or the one that has come in its place. Raises PluginRefused."""
        request = tm.RegisterHintProviderRequest(name=found.name, endpoint=str(found.endpoint))
        try:
            await self._register(request)
        except (NumalignError, ProviderDown) as error:
            raise PluginRefused(str(error)) from error
        _log.info("hint provider found", provider=found.name, socket=str(found.endpoint))

    async def deregister(self, found: Found) -> None:
        """Its socket is gone."""
        _log.warning(
            "the socket of a hint provider is gone; nothing is admitted without it",
            provider=found.name,
            socket=str(found.endpoint),
        )


def watch_providers(directory: Path, handler: HintProviderHandler) -> PluginWatcher:
    """A watcher of the directory; plugins of other types are for whoever else looks at it."""
    return PluginWatcher(
        directory,
        {HINT_PROVIDER_TYPE: handler},
        elsewhere=lambda type_: type_ != HINT_PROVIDER_TYPE,
    )
