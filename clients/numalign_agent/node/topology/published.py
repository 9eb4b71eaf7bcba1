"""The object of one node on the API server: brought to say what it should, and taken away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign_agent.api import paths
from numalign_agent.api.errors import ApiError, Refused
from numalign_agent.api.server import ApiServer
from numalign_agent.node.failures import NO_TOPOLOGY_KIND, is_overtaken
from numalign_agent.node.metrics import TOPOLOGY_WRITES
from numalign_agent.node.topology.objects import new_object, renewed, says, writers

Json = Mapping[str, Any]

_TRIES = 3

_log = get_logger("node")


class NoTopologyKind(ApiError):
    """The cluster does not know the kind of object."""


class PublishedTopology:
    """Writes one object, and knows what it last wrote."""

    def __init__(self, server: ApiServer, node_name: str, metrics: Metrics) -> None:
        self._server = server
        self._node_name = node_name
        self._place = paths.topology(node_name)
        self._writes = metrics.counter(TOPOLOGY_WRITES)
        self._node_uid = ""
        self._object: Json | None = None
        self._made: Json | None = None

    def is_written(self, made: Json) -> bool:
        """Whether this is what was written last."""
        return self._object is not None and self._made == made

    async def write(self, made: Json, *, look: bool) -> None:
        """Have the object say this. With `look`, what is known of it and of the Node is read anew.

        Raises ApiError, and NoTopologyKind where the cluster lacks the kind.
        """
        if look or not self._node_uid:
            # Without its Node nobody would take the object away.
            node = await self._server.get(paths.node(self._node_name))
            self._node_uid = str(node["metadata"]["uid"])
        known = None if look else self._object
        for tries_left in reversed(range(_TRIES)):
            if known is None:
                known = await self._read()
            try:
                self._object = await self._put(known, made)
            except Refused as error:
                # Somebody wrote or deleted it in between.
                if tries_left and (is_overtaken(error) or (known and error.is_not_found)):
                    known = None
                    continue
                raise
            self._made = made
            return

    async def delete(self) -> None:
        """Take the object away, if it is the one that was written here. Raises ApiError."""
        if self._object is None:
            return
        uid = str(self._object["metadata"]["uid"])
        self._object = None
        try:
            await self._server.delete(self._place, uid=uid, grace_seconds=0)
        except Refused as error:
            if error.is_not_found or error.is_conflict:
                return
            raise
        self._writes.labels("deleted").inc()

    async def _read(self) -> Json | None:
        try:
            return await self._server.get(self._place)
        except Refused as error:
            if error.is_not_found:
                return None
            raise

    async def _put(self, known: Json | None, made: Json) -> Json:
        if known is None:
            return await self._create(new_object(self._node_name, self._node_uid, made))
        wanted = renewed(known, self._node_name, self._node_uid, made)
        if wanted == known:
            return known
        repaired = self._made is not None and not says(known, self._made)
        answer = await self._server.replace(self._place, wanted)
        self._writes.labels("repaired" if repaired else "updated").inc()
        if repaired:
            _log.warning(
                "somebody else had written the node's NodeResourceTopology",
                node=self._node_name,
                managers=writers(known),
            )
        return answer

    async def _create(self, wanted: Json) -> Json:
        try:
            answer = await self._server.create(paths.TOPOLOGIES, wanted)
        except Refused as error:
            if error.is_not_found:
                raise NoTopologyKind(NO_TOPOLOGY_KIND) from error
            raise
        self._writes.labels("created").inc()
        _log.info("made the node's NodeResourceTopology", node=self._node_name)
        return answer
