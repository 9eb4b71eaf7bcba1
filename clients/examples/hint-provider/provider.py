"""A hint provider for ways of the last-level cache, of which each NUMA node has a row.

A container asks for `example.com/cache-way: 4` and gets four ways that lie side by side in the
cache of one NUMA node, as the hardware wants them. Run it beside numalign, which finds it by its
socket in `providersRegistry`, or is told by the provider:

    python provider.py /run/numalign-providers/cache-ways.sock
    python provider.py /run/numalign/cache-ways.sock /run/numalign/topology.sock
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from numalign.kube.core.v1 import core_pb2
from numalign_client.sdk import (
    AsyncHintProvider,
    AsyncProviderServer,
    CannotAllocate,
    Grant,
    Hints,
    requested,
)

WAY = "example.com/cache-way"
WAYS = {0: 12, 1: 12}


class CacheWays(AsyncHintProvider):
    """Rows of cache ways by NUMA node."""

    name = "cache-ways"
    resources = (WAY,)

    def __init__(self, ways: Mapping[int, int]) -> None:
        self._ways = ways

    async def hints(self, _: core_pb2.Pod, container: core_pb2.Container) -> Hints | None:
        """Every node with enough free ways in a row."""
        wanted = requested(container, WAY)
        if not wanted:
            return None
        return {WAY: [({node}, True) for node in self._ways if self._row(node, wanted)]}

    async def allocate(
        self, _: core_pb2.Pod, container: core_pb2.Container, nodes: frozenset[int] | None
    ) -> Mapping[str, Grant]:
        """The first such row on the nodes that were chosen."""
        wanted = requested(container, WAY)
        if not wanted:
            return {}
        for node in self._ways:
            row = self._row(node, wanted) if nodes is None or node in nodes else []
            if row:
                return {WAY: Grant(ids_by_node={node: row})}
        raise CannotAllocate(f"there are not {wanted} free cache ways in a row")

    def _row(self, node: int, wanted: int) -> list[str]:
        taken = self.taken(WAY)
        ways = [f"{node}/{way}" for way in range(self._ways[node])]
        rows = (ways[first : first + wanted] for first in range(len(ways) - wanted + 1))
        return next((row for row in rows if taken.isdisjoint(row)), [])


if __name__ == "__main__":
    socket, *others = sys.argv[1:]
    topology_manager = others[0] if others else None
    AsyncProviderServer(CacheWays(WAYS), socket, topology_manager=topology_manager).run()
