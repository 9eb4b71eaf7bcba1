"""The API source: the pods that an API server has for this node (CFG-14)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from numalign_agent.api import paths
from numalign_agent.api.reflector import Pace, Reflector
from numalign_agent.api.server import ApiServer
from numalign_agent.pod import AgentPod
from numalign_agent.sources.port import Deliver

NAME = "api"


class ApiSource:
    """Delivers the pods that are bound to `node_name`, mirror pods among them.

    Begins when the Node object is known; while the server is away the last known pods stay.
    """

    name = NAME

    def __init__(
        self,
        server: ApiServer,
        node_name: str,
        node_known: asyncio.Event,
        pace: Pace | None = None,
    ) -> None:
        self._node_known = node_known
        self._reflector = Reflector(
            server, paths.PODS, f"spec.nodeName={node_name}", self._told, pace
        )
        self._deliver: Deliver | None = None

    def problems(self) -> Mapping[str, str]:
        """Why the pods cannot be read at present."""
        return self._reflector.problems()

    async def run(self, deliver: Deliver) -> None:
        """Follow the pods until cancelled."""
        self._deliver = deliver
        await self._node_known.wait()
        await self._reflector.run()

    async def _told(self, objects: tuple[Mapping[str, Any], ...]) -> None:
        assert self._deliver is not None  # noqa: S101 - run has set it
        await self._deliver([AgentPod(obj) for obj in objects])
