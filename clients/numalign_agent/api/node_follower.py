"""Follows this node's own Node object."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from numalign.telemetry.logs import get_logger
from numalign_agent.api import paths
from numalign_agent.api.failures import no_such_node
from numalign_agent.api.reflector import Pace, Reflector
from numalign_agent.api.server import ApiServer
from numalign_agent.trouble import Troubles

Json = Mapping[str, Any]
Told = Callable[[Json], Awaitable[None]]

_MISSING = "node"

_log = get_logger("agent.node")


class NodeFollower:
    """The Node object as the server has it, and who is told when it changes.

    `synced` is set once the server has said whether there is one. That there is none is a problem,
    unless `is_ours`: then the agent makes it.
    """

    def __init__(
        self,
        server: ApiServer,
        node_name: str,
        told: Sequence[Told] = (),
        pace: Pace | None = None,
        *,
        is_ours: bool = False,
    ) -> None:
        self._node_name = node_name
        self._is_ours = is_ours
        self._troubles = Troubles(_log)
        self._tell = tuple(told)
        self._reflector = Reflector(
            server, paths.NODES, f"metadata.name={node_name}", self._take, pace
        )
        self._node: Json | None = None
        self.synced = asyncio.Event()

    def node(self) -> Json | None:
        """The Node object; None while it is not known, and when it was deleted."""
        return self._node

    def problems(self) -> Mapping[str, str]:
        """Why the node is not known at present."""
        return {**self._reflector.problems(), **self._troubles.current()}

    async def run(self) -> None:
        """Follow it until cancelled."""
        await self._reflector.run()

    async def _take(self, objects: tuple[Json, ...]) -> None:
        self._node = objects[0] if objects else None
        self.synced.set()
        if self._node is None:
            if not self._is_ours:
                self._troubles.say(_MISSING, no_such_node(self._node_name))
        else:
            self._troubles.mended(_MISSING)
            for tell in self._tell:
                await tell(self._node)
