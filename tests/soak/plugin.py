"""The device plugin of a soak: a process of its own that dies and comes back.

Separate from the services, which find it and lose it.
"""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

from tests.integration.node_document import GPU
from tests.integration.plugin_world import Place, end

from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import hint_provider_pb2_grpc as hp_grpc

DEVICES = 12
BACK_SECONDS = 20.0
"""How long it may take until its devices are offered again."""


def plugins_section(directory: Path) -> dict[str, object]:
    """The configuration of the device service."""
    return {"mode": "host", "directory": str(directory / "dp"), "pluginsRegistry": ""}


class SoakPlugin:
    """The sample plugin, with devices on both NUMA nodes."""

    def __init__(self, directory: Path) -> None:
        self._place = Place(directory)

    def begin(self) -> None:
        """Make its devices, and start it."""
        self._place.plugins.mkdir(exist_ok=True)
        for number in range(DEVICES):
            self._place.device(f"g{number}", number % 2, resource=GPU)
        self.start()

    def start(self) -> None:
        """Start it."""
        self._process = self._place.plugin(resource=GPU)

    def kill(self) -> None:
        """Kill it, and see that it is gone."""
        end(self._process, signal.SIGKILL)

    def close(self) -> None:
        """End whatever was started."""
        for process in self._place.processes:
            end(process, signal.SIGKILL)

    async def check(self, device: hp_grpc.HintProviderAsyncStub) -> list[str]:
        """What is wrong if not all of its devices are healthy again after a while."""
        until = time.monotonic() + BACK_SECONDS
        while True:
            state = (await device.GetState(hp.GetStateRequest(), timeout=5)).device
            healthy = [d.id for r in state.resources for d in r.devices if d.healthy]
            if len(healthy) == DEVICES:
                return []
            if time.monotonic() > until:
                return [f"of the plugin's devices only {healthy} are healthy"]
            await asyncio.sleep(0.05)
