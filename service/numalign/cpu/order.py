"""The elements of a machine in the order in which the packed algorithm looks at them.

A `Layout` holds, computed once, which elements lie under which; ranking them for a set of
free CPUs is then counting bits. Two layouts exist because the kubelet judges cores, sockets
and caches by machine-wide averages: `averaged_layout` does so too, `real_layout` takes every
element for what it is. The algorithms do not know which one they run on.
Rules CPU-54 and CPU-55.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from numalign.cpu.topology import CpuTopology


@dataclass(frozen=True, slots=True)
class Element:
    """A NUMA node, socket, core or uncore cache.

    `size` counts its CPUs. It is fully free if exactly `full` of them are free (CPU-55).
    `average` is the size that a request is compared with before it is tried: only uncore
    caches look at it (CPU-58).
    """

    id: int
    bits: int
    size: int
    full: int
    average: int


Placed: TypeAlias = tuple[int, Element]
"""An element under a parent, and the CPUs one of which must be free for it to be listed."""

Children: TypeAlias = Mapping[int, tuple[Placed, ...]]
"""Elements of the next level by the id of their parent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The levels from the first looked at to the last.

    `nodes_first` says that `first` holds the NUMA nodes and `second` their sockets; else it
    is the other way round. `cores` is keyed by the ids of the second level, `uncores` by
    NUMA node; `uncore_cores` lists the cores of each cache by id.
    """

    nodes_first: bool
    first: tuple[Placed, ...]
    second: Children
    cores: Children
    uncores: Children
    uncore_cores: Mapping[int, tuple[Element, ...]]
    num_nodes: int
    num_cpus: int


def ranked(candidates: Iterable[Placed], free: int) -> list[Element]:
    """The candidates that have a free CPU, by number of free CPUs, then by id (CPU-54)."""
    rows = [
        ((element.bits & free).bit_count(), element.id, element)
        for within, element in candidates
        if within & free
    ]
    # Ids differ within one list, so elements themselves are never compared.
    rows.sort()
    return [row[2] for row in rows]


def averaged_layout(topology: CpuTopology) -> Layout:
    """Cores, sockets and caches judged by the averages of the machine, as the kubelet does.

    An element that spans two parents is listed under both (CPU-54).
    """
    return _layout(
        topology,
        nodes=_elements(topology.nodes),
        sockets=_elements(topology.sockets, full=topology.cpus_per_socket),
        cores=_elements(topology.cores, full=topology.cpus_per_core),
        uncores=_elements(topology.uncores, average=topology.cpus_per_uncore),
        once=False,
    )


def real_layout(topology: CpuTopology) -> Layout:
    """Every element judged by its own size, and listed once even if it spans two parents."""
    return _layout(
        topology,
        nodes=_elements(topology.nodes),
        sockets=_elements(topology.sockets),
        cores=_elements(topology.cores),
        uncores=_elements(topology.uncores),
        once=True,
    )


def _elements(
    level: Mapping[int, int], full: int | None = None, average: int | None = None
) -> tuple[Element, ...]:
    return tuple(
        Element(
            ident,
            bits,
            size := bits.bit_count(),
            size if full is None else full,
            size if average is None else average,
        )
        for ident, bits in level.items()
    )


def _layout(
    topology: CpuTopology,
    *,
    nodes: tuple[Element, ...],
    sockets: tuple[Element, ...],
    cores: tuple[Element, ...],
    uncores: tuple[Element, ...],
    once: bool,
) -> Layout:
    nodes_first = topology.num_sockets >= len(nodes)
    first, second = (nodes, sockets) if nodes_first else (sockets, nodes)
    return Layout(
        nodes_first=nodes_first,
        first=tuple((element.bits, element) for element in first),
        second=_children(first, second, once=once),
        cores=_children(second, cores, once=once),
        uncores=_children(nodes, uncores, once=once),
        uncore_cores={
            uncore.id: tuple(core for core in cores if core.bits & uncore.bits)
            for uncore in uncores
        },
        num_nodes=len(nodes),
        num_cpus=len(topology.all_cpus),
    )


def _children(parents: Iterable[Element], level: Iterable[Element], *, once: bool) -> Children:
    """The elements of `level` that share a CPU with each parent."""
    children: dict[int, tuple[Placed, ...]] = {}
    listed: set[int] = set()
    for parent in parents:
        placed = []
        for element in level:
            shared = element.bits & parent.bits
            if shared and not (once and element.id in listed):
                placed.append((element.bits if once else shared, element))
                listed.add(element.id)
        children[parent.id] = tuple(placed)
    return children
