"""Hints for CPUs: which sets of NUMA nodes could hold a request. Rules CPU-41..CPU-43.

What is asked of a set of nodes is separable: a sum over its nodes and a set of nodes that
must be in it. `Demand` is that question; `HintTable` answers it by listing all sets, or on a
machine with many nodes by describing them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

from numalign.cpu.topology import CpuTopology
from numalign.model.cpu_set import CpuSet
from numalign.model.hint import FamilyList, Piece, SocketRule, Threshold, TopologyHint
from numalign.model.numa_mask import NumaMask, mask_of

MAX_LISTED_NODES = 8
"""Above this many NUMA nodes with CPUs the sets of nodes are described, not listed."""


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
    """What can be said about sets of NUMA nodes before anybody asks.

    Up to `MAX_LISTED_NODES` these are all sets in the order of TM-5, ready to be filtered.
    """

    def __init__(
        self,
        topology: CpuTopology,
        *,
        align_by_socket: bool,
        most_listed: int = MAX_LISTED_NODES,
    ) -> None:
        self._position = {node: i for i, node in enumerate(topology.nodes)}
        self._nodes_per_socket = (
            len(topology.nodes) // topology.num_sockets
            if align_by_socket and topology.num_sockets
            else 0
        )
        listed = len(topology.nodes) <= most_listed
        self._rows = _rows(topology) if listed else None
        self._ground = mask_of(topology.nodes)
        self._sockets = tuple(
            mask_of(node for node, bits in topology.nodes.items() if bits & cpus)
            for cpus in topology.sockets.values()
        )

    def hints(self, asked: Demand) -> tuple[TopologyHint, ...] | FamilyList:
        """The sets of nodes that can hold the request, each preferred or not (CPU-41, CPU-42).

        Empty where no set can.
        """
        if self._rows is None:
            return self._described(asked)
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

    def _described(self, asked: Demand) -> tuple[TopologyHint, ...] | FamilyList:
        """The sets as one piece (F-1): they hold `must`, and their free CPUs add up."""
        if sum(asked.free) < asked.threshold:
            return ()
        enough = Threshold(asked.threshold, asked.free)
        needed = self._sockets_needed(asked.minimum)
        return FamilyList(
            pieces=(Piece(self._ground, mask_of(asked.must), (enough,)),),
            preferred_count=asked.minimum,
            sockets=SocketRule(self._sockets, needed) if needed else None,
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
