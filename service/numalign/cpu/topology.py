"""The CPUs of the machine by NUMA node, socket, core and uncore cache.

Separate from the machine description because the kubelet counts and names things its own
way: core ids are thread ids, CPU-less nodes do not exist, and sizes are averages over the
whole machine. Rules CPU-9..CPU-14.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from numalign.model.cpu_set import CpuSet
from numalign.model.machine import Machine


class TopologyError(ValueError):
    """The machine's CPUs cannot be understood; the message is the kubelet's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """Where one CPU is: ids of its NUMA node, socket, core and uncore cache (CPU-11)."""

    node: int
    socket: int
    core: int
    uncore: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTopology:
    """The CPUs of each element, as bits of one integer, keyed by id in ascending order.

    `num_cpus`, `num_sockets` and `num_cores` are counters of their own that may differ from
    what the elements add up to (CPU-12, CPU-14).
    """

    num_cpus: int
    num_sockets: int
    num_cores: int
    nodes: Mapping[int, int]
    sockets: Mapping[int, int]
    cores: Mapping[int, int]
    uncores: Mapping[int, int]
    all_cpus: CpuSet
    core_of: Mapping[int, int]

    @property
    def cpus_per_core(self) -> int:
        """Average CPUs of a core, rounded down (CPU-13)."""
        return self.num_cpus // self.num_cores if self.num_cores else 0

    @property
    def group_size(self) -> int:
        """CPUs that full-pcpus-only keeps together (G of CPU-21), at least 1."""
        return max(self.cpus_per_core, 1)

    @property
    def cpus_per_socket(self) -> int:
        """Average CPUs of a socket, rounded down (CPU-13)."""
        return self.num_cpus // self.num_sockets if self.num_sockets else 0

    @property
    def cpus_per_uncore(self) -> int:
        """Average CPUs of an uncore cache, rounded down (CPU-13)."""
        return self.num_cpus // len(self.uncores) if self.uncores else 0


def discover(machine: Machine) -> CpuTopology:
    """The topology of `machine`. Raises TopologyError (CPU-9, CPU-10)."""
    num_cpus = machine.cpu_count()
    if num_cpus == 0:
        raise TopologyError("could not detect number of cpus")
    threads: dict[int, Thread] = {}
    num_cores = 0
    for node in machine.numa_nodes:
        num_cores += len(node.cores)
        for core in node.cores:
            core_id = _core_id(core.threads)
            uncore = core.socket_id if core.uncore_cache_id is None else core.uncore_cache_id
            place = Thread(node=node.id, socket=core.socket_id, core=core_id, uncore=uncore)
            # A thread listed under several nodes belongs to the last one (CPU-11).
            threads.update(dict.fromkeys(core.threads, place))
    return topology_of(
        threads, num_cpus=num_cpus, num_sockets=machine.socket_count(), num_cores=num_cores
    )


def topology_of(
    threads: Mapping[int, Thread], *, num_cpus: int, num_sockets: int, num_cores: int
) -> CpuTopology:
    """The topology that places each CPU of `threads`, with the given counters."""
    nodes: dict[int, int] = {}
    sockets: dict[int, int] = {}
    cores: dict[int, int] = {}
    uncores: dict[int, int] = {}
    for cpu, place in threads.items():
        bit = 1 << cpu
        nodes[place.node] = nodes.get(place.node, 0) | bit
        sockets[place.socket] = sockets.get(place.socket, 0) | bit
        cores[place.core] = cores.get(place.core, 0) | bit
        uncores[place.uncore] = uncores.get(place.uncore, 0) | bit
    return CpuTopology(
        num_cpus=num_cpus,
        num_sockets=num_sockets,
        num_cores=num_cores,
        nodes=dict(sorted(nodes.items())),
        sockets=dict(sorted(sockets.items())),
        cores=dict(sorted(cores.items())),
        uncores=dict(sorted(uncores.items())),
        all_cpus=CpuSet.of(threads),
        core_of={cpu: place.core for cpu, place in threads.items()},
    )


def _core_id(threads: tuple[int, ...]) -> int:
    """The smallest thread id, which names the core (CPU-10)."""
    if not threads:
        raise TopologyError("no cpus provided")
    if len(set(threads)) != len(threads):
        raise TopologyError("cpus provided are not unique")
    return min(threads)
