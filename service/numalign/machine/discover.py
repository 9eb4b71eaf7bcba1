"""The machine that the kernel shows below a root directory.

Reads sysfs and /proc the way a kubelet's machine information does, so that the same kernel
gives the same placement: nodes that are online, CPUs that are online, distances as printed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from numalign.errors import ConfigError
from numalign.machine.cores import cores_of
from numalign.machine.cpuinfo import cores_from_cpuinfo
from numalign.machine.memory import huge_pages, memory_bytes
from numalign.machine.online import CPU_DIRECTORY, cpu_states
from numalign.machine.tree import Tree
from numalign.model.cpu_set import NO_CPUS, CpuSet
from numalign.model.machine import Machine, NumaNode
from numalign.model.numa_mask import MAX_NUMA_ID

NODE_DIRECTORY = "sys/devices/system/node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered:
    """A machine and what the model has no place for.

    `isolated` CPUs are part of the machine; `offline` ones are not. `memory_capacity` is the
    memory of the whole machine in bytes, which is a little more or less than the nodes add
    up to.
    """

    machine: Machine
    memory_capacity: int
    isolated: CpuSet = NO_CPUS
    offline: CpuSet = NO_CPUS
    warnings: tuple[str, ...] = ()


def discover(root: Path = Path("/")) -> Discovered:
    """Discover the machine whose /sys and /proc lie below `root`.

    Raises ConfigError naming the file that cannot be read or understood, or the NUMA node
    whose id no mask can hold (TM-1).
    """
    if not root.is_dir():
        raise ConfigError(f"{root}: is no directory")
    tree = Tree(root)
    nodes = tree.cpu_list(f"{NODE_DIRECTORY}/online")
    if nodes is None:
        nodes = CpuSet.of(tree.numbered(NODE_DIRECTORY, "node"))
    for node_id in nodes:
        if node_id > MAX_NUMA_ID:
            raise ConfigError(f"NUMA node {node_id}: ids above {MAX_NUMA_ID} are not supported")
    return _discover_nodes(tree, nodes) if nodes else _discover_single_node(tree)


def _discover_nodes(tree: Tree, ids: Iterable[int]) -> Discovered:
    states = cpu_states(tree)
    nodes = []
    warnings: list[str] = []
    placed = NO_CPUS
    for node_id in ids:
        directory = f"{NODE_DIRECTORY}/node{node_id}"
        cpus = tree.cpu_list(f"{directory}/cpulist")
        if cpus is None:
            cpus = CpuSet.of(tree.numbered(directory, "cpu"))
        if not cpus.isdisjoint(placed):
            raise ConfigError(
                f"{tree.path(directory)}: CPUs {cpus & placed} are those of another node too"
            )
        placed |= cpus
        found = cores_of(tree, cpus & states.online)
        warnings.extend(found.warnings)
        memory = memory_bytes(tree, f"{directory}/meminfo")
        if memory is None:
            warnings.append(f"NUMA node {node_id} reports no memory information")
        nodes.append(
            NumaNode(
                id=node_id,
                memory_bytes=memory or 0,
                hugepages=huge_pages(tree, f"{directory}/hugepages"),
                distances=_distances(tree, f"{directory}/distance"),
                cores=found.cores,
            )
        )
    if homeless := states.online - placed:
        warnings.append(f"CPUs {homeless} belong to no NUMA node and are left out")
    return Discovered(
        machine=Machine(numa_nodes=tuple(nodes)),
        memory_capacity=_capacity(tree, sum(node.memory_bytes for node in nodes)),
        isolated=states.isolated,
        offline=states.offline,
        warnings=tuple(warnings),
    )


def _discover_single_node(tree: Tree) -> Discovered:
    """A kernel without NUMA support: everything is node 0, without distances."""
    warnings = ["the kernel shows no NUMA nodes; the whole machine is taken as node 0"]
    isolated = offline = NO_CPUS
    if tree.numbered(CPU_DIRECTORY, "cpu"):
        states = cpu_states(tree)
        found = cores_of(tree, states.online)
        cores = found.cores
        warnings.extend(found.warnings)
        isolated, offline = states.isolated, states.offline
    else:
        cores = cores_from_cpuinfo(tree)
    if len({core.socket_id for core in cores}) > 1:
        warnings.append("there are several sockets; a kubelet takes each of them for a node")
    memory = _capacity(tree, 0)
    node = NumaNode(
        id=0,
        memory_bytes=memory,
        hugepages=huge_pages(tree, "sys/kernel/mm/hugepages"),
        cores=cores,
    )
    return Discovered(
        machine=Machine(numa_nodes=(node,)),
        memory_capacity=memory,
        isolated=isolated,
        offline=offline,
        warnings=tuple(warnings),
    )


def _capacity(tree: Tree, otherwise: int) -> int:
    memory = memory_bytes(tree, "proc/meminfo")
    return otherwise if memory is None else memory


def _distances(tree: Tree, path: str) -> tuple[int, ...] | None:
    """The row as the kernel prints it: one entry per node that exists (TM-9)."""
    text = tree.text(path)
    if text is None:
        return None
    try:
        return tuple(int(distance) for distance in text.split())
    except ValueError:
        raise ConfigError(f'{tree.path(path)}: must hold whole numbers, not "{text}"') from None
