"""Hints for CPUs: which sets of NUMA nodes could hold a request. Rules CPU-41..CPU-43.

What is asked of a set of nodes is separable: a sum over its nodes and a set of nodes that
must be in it. `Demand` is that question; `HintTable` answers it by listing all sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

from numalign.cpu.topology import CpuTopology
from numalign.errors import ConfigError
from numalign.model.cpu_set import CpuSet
from numalign.model.hint import TopologyHint
from numalign.model.numa_mask import MAX_NUMA_ID, NumaMask

MAX_LISTED_NODES = 16
"""Above this many NUMA nodes the sets of nodes are too many to list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """A request as seen by sets of NUMA nodes; positions follow `nodes`, ids ascending.

    A set can hold the request if it contains the nodes of `must` and its `free` CPUs sum up
    to `threshold`. It is preferred if it has `minimum` nodes.
    """

    nodes: tuple[int, ...]
    capacity: tuple[int, ...]
    free: tuple[int, ...]
    must: frozenset[int]
    threshold: int
    minimum: int


def demand(topology: CpuTopology, available: CpuSet, reusable: CpuSet, count: int) -> Demand:
    """What `count` CPUs ask of a set of nodes (CPU-41).

    Reusable CPUs must all lie in the set and are counted beside the available ones.
    """
    nodes = topology.nodes
    capacity = tuple(bits.bit_count() for bits in nodes.values())
    return Demand(
        nodes=tuple(nodes),
        capacity=capacity,
        free=tuple((bits & available.bits).bit_count() for bits in nodes.values()),
        must=frozenset(node for node, bits in nodes.items() if bits & reusable.bits),
        threshold=count - len(reusable),
        minimum=minimum_nodes(capacity, count),
    )


def minimum_nodes(capacity: tuple[int, ...], count: int) -> int:
    """How few nodes hold `count` CPUs on an empty machine; all nodes if they do not."""
    held = 0
    for nodes, size in enumerate(sorted(capacity, reverse=True), start=1):
        held += size
        if held >= count:
            return nodes
    return len(capacity)


_Row: TypeAlias = tuple[int, int, int, TopologyHint, TopologyHint]
"""A set of nodes: its nodes as bits by position, how many nodes, how many sockets they
touch, and its hint without and with preference. A plain tuple: there may be thousands."""


class HintTable:
    """All sets of NUMA nodes of a machine in the order of TM-5, ready to be filtered."""

    def __init__(self, topology: CpuTopology, *, align_by_socket: bool) -> None:
        self._position = {node: i for i, node in enumerate(topology.nodes)}
        self._nodes_per_socket = (
            len(topology.nodes) // topology.num_sockets
            if align_by_socket and topology.num_sockets
            else 0
        )
        listed = len(topology.nodes) <= MAX_LISTED_NODES
        self._rows = _rows(topology) if listed else None

    def hints(self, asked: Demand) -> tuple[TopologyHint, ...]:
        """The sets of nodes that can hold the request, each preferred or not (CPU-41, CPU-42).

        Raises ConfigError on a machine with more than `MAX_LISTED_NODES` NUMA nodes.
        """
        if self._rows is None:
            raise ConfigError(
                f"hints over {len(self._position)} NUMA nodes cannot be listed: "
                f"at most {MAX_LISTED_NODES} are supported with this topology policy"
            )
        sums = [0]
        for free in asked.free:
            sums += [held + free for held in sums]
        must = sum(1 << self._position[node] for node in asked.must)
        threshold, minimum = asked.threshold, asked.minimum
        sockets = self._sockets_needed(minimum)
        return tuple(
            [
                preferred if size == minimum or touched == sockets else plain
                for positions, size, touched, plain, preferred in self._rows
                if positions & must == must and sums[positions] >= threshold
            ]
        )

    def _sockets_needed(self, minimum: int) -> int:
        """How many sockets a socket-aligned set touches; 0 if none is (CPU-42)."""
        per_socket = self._nodes_per_socket
        return (minimum + per_socket - 1) // per_socket if per_socket else 0


def _rows(topology: CpuTopology) -> tuple[_Row, ...]:
    touched_by = _sockets_touched(topology)
    masks, touched = [0], [0]
    for node in topology.nodes:
        masks += [mask | 1 << node for mask in masks]
        touched += [sockets | touched_by[node] for sockets in touched]
    if masks[-1] >> (MAX_NUMA_ID + 1):
        raise ValueError("bit number must be in range 0-63")
    places = [1 << i for i in range(len(topology.nodes))]
    return tuple(
        (
            positions,
            size,
            touched[positions].bit_count(),
            TopologyHint(NumaMask(masks[positions]), False),
            TopologyHint(NumaMask(masks[positions]), True),
        )
        for size in range(1, len(places) + 1)
        for positions in map(sum, combinations(places, size))
    )


def _sockets_touched(topology: CpuTopology) -> Mapping[int, int]:
    """The sockets that each node's CPUs are on, as bits by position."""
    return {
        node: sum(1 << i for i, cpus in enumerate(topology.sockets.values()) if cpus & bits)
        for node, bits in topology.nodes.items()
    }
