"""The Node object as having pods judged needs it (admitting.port.NodeObjects)."""

from __future__ import annotations

from numalign.kube.core.v1 import core_pb2
from numalign.telemetry.logs import get_logger
from numalign_agent.api import paths
from numalign_agent.api.errors import ApiError
from numalign_agent.api.node_follower import NodeFollower
from numalign_agent.api.node_teller import read_node
from numalign_agent.api.server import ApiServer

_log = get_logger("agent.node")


class FollowedNode:
    """What the follower has, and the server itself where that may be old."""

    def __init__(self, server: ApiServer, node_name: str, follower: NodeFollower) -> None:
        self._server = server
        self._node_name = node_name
        self._follower = follower

    def current(self) -> core_pb2.Node | None:
        """As it was last seen."""
        node = self._follower.node()
        return None if node is None else read_node(node)

    async def read(self) -> core_pb2.Node | None:
        """As it is now."""
        try:
            return read_node(await self._server.get(paths.node(self._node_name)))
        except ApiError as error:
            _log.warning("the Node object cannot be read anew", error=str(error))
            return None
