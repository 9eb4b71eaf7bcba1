"""Tells Admission what the Node object says, whenever that is something else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from numalign.errors import InvalidInput
from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_json import node_from_json
from numalign.telemetry.logs import get_logger
from numalign_agent.backoff import Backoff
from numalign_client.errors import AdmissionError

Json = Mapping[str, Any]

REPEAT_SECONDS = 10.0
"""How often an unchanged node is told again: a service that restarted has forgotten it."""

_log = get_logger("agent.node")


class NodeTeller:
    """Holds the latest node for `tell`, which is Admission's SetNode.

    Heartbeats are no change: what is compared is what the services read of a Node.
    """

    def __init__(
        self,
        tell: Callable[[core_pb2.Node], Awaitable[None]],
        repeat_seconds: float = REPEAT_SECONDS,
        backoff: Backoff | None = None,
    ) -> None:
        self._tell = tell
        self._repeat_seconds = repeat_seconds
        self._backoff = backoff or Backoff(0.2, 5.0)
        self._node: core_pb2.Node | None = None
        self._wake = asyncio.Event()
        self.told = asyncio.Event()

    async def take(self, node: Json) -> None:
        """Another Node object."""
        try:
            message = read_node(node)
        except InvalidInput as error:
            _log.error("the Node object cannot be read", why=str(error))
            return
        if message != self._node:
            self._node = message
            self._wake.set()

    def again(self) -> None:
        """Tell it at once: the service may have restarted."""
        self._wake.set()

    async def run(self) -> None:
        """Tell until cancelled; `told` is set once the service knows the node."""
        while True:
            self._wake.clear()
            wait = self._repeat_seconds
            if self._node is not None:
                try:
                    await self._tell(self._node)
                except AdmissionError as error:
                    wait = self._backoff.failed()
                    _log.warning("Admission does not hear of the node", why=str(error))
                else:
                    self._backoff.succeeded()
                    self.told.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()


def read_node(node: Json) -> core_pb2.Node:
    """The message of a Node object, without what every write to it changes.

    Raises InvalidInput for a field of the wrong kind.
    """
    message = node_from_json(node)
    message.metadata.ClearField("resource_version")
    return message
