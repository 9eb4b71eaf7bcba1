"""What having pods judged needs to know of the Node object.

Separate, because an agent without an API server has none, and none of this then happens.
"""

from __future__ import annotations

from typing import Protocol

from numalign.kube.core.v1 import core_pb2


class NodeObjects(Protocol):
    """The Node object of this node, as the API server has it."""

    def current(self) -> core_pb2.Node | None:
        """As it was last seen; None before the first time."""

    async def read(self) -> core_pb2.Node | None:
        """As it is now; None where it cannot be read."""
