"""A hint provider for licence dongles, each of which is plugged into one NUMA node.

A container asks for `example.com/licence: 2` and gets two dongles, on the nodes that the
Topology Manager chose together with its CPUs and memory. Run it beside numalign:

    python provider.py /run/licences/hints.sock /run/numalign/topology.sock
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import combinations

from numalign.kube.core.v1 import core_pb2
from numalign_client.sdk import (
    CannotAllocate,
    Grant,
    Hints,
    ProviderServer,
    SimpleHintProvider,
    requested,
)

LICENCE = "example.com/licence"
DONGLES = {"dongle-0": 0, "dongle-1": 0, "dongle-2": 1}


class Licences(SimpleHintProvider):
    """Dongles by id, each with its NUMA node."""

    name = "licences"
    resources = (LICENCE,)

    def __init__(self, dongles: Mapping[str, int]) -> None:
        self._dongles = dongles

    def hints(self, _: core_pb2.Pod, container: core_pb2.Container) -> Hints | None:
        """Every set of nodes with enough free dongles; the smallest possible are preferred."""
        wanted = requested(container, LICENCE)
        if not wanted:
            return None
        nodes = sorted(set(self._dongles.values()))
        sets = [set(c) for size in range(1, len(nodes) + 1) for c in combinations(nodes, size)]
        free = self._free()
        could = [len(s) for s in sets if self._on(self._dongles, s) >= wanted]
        return {LICENCE: [(s, len(s) == min(could)) for s in sets if self._on(free, s) >= wanted]}

    def allocate(
        self, _: core_pb2.Pod, container: core_pb2.Container, nodes: frozenset[int] | None
    ) -> Mapping[str, Grant]:
        """The first free dongles on the nodes that were chosen."""
        wanted = requested(container, LICENCE)
        if not wanted:
            return {}
        free = [i for i, node in sorted(self._free().items()) if nodes is None or node in nodes]
        if len(free) < wanted:
            raise CannotAllocate(f"{wanted} licences asked for, {len(free)} are free")
        by_node: dict[int, list[str]] = {}
        for dongle in free[:wanted]:
            by_node.setdefault(self._dongles[dongle], []).append(dongle)
        return {LICENCE: Grant(ids_by_node=by_node)}

    def _free(self) -> dict[str, int]:
        taken = self.taken(LICENCE)
        return {i: node for i, node in self._dongles.items() if i not in taken}

    @staticmethod
    def _on(dongles: Mapping[str, int], nodes: set[int]) -> int:
        return sum(node in nodes for node in dongles.values())


if __name__ == "__main__":
    socket, topology_manager = sys.argv[1:3]
    ProviderServer(Licences(DONGLES), socket, topology_manager=topology_manager).run()
