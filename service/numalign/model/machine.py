"""The machine as the deciding parts see it: NUMA nodes, cores, caches, memory, huge pages.

One schema serves machine files, discovery from sysfs and recordings, so its field names are
those of the files.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """A physical core. `threads` are CPU ids; `uncore_cache_id` None means no L3 reported."""

    id: int
    socket_id: int
    threads: tuple[int, ...]
    uncore_cache_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HugePages:
    """A pool of huge pages of one size on one NUMA node."""

    page_size_kib: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaNode:
    """A NUMA node. `memory_bytes` includes the huge pages; `distances` None is not reported."""

    id: int
    memory_bytes: int = 0
    hugepages: tuple[HugePages, ...] = ()
    distances: tuple[int, ...] | None = None
    cores: tuple[Core, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The whole machine; nodes in the order reported.

    `num_cpus` and `num_sockets` override what the cores add up to (a kubelet takes both
    from elsewhere than the core list).
    """

    numa_nodes: tuple[NumaNode, ...]
    num_cpus: int | None = field(default=None)
    num_sockets: int | None = field(default=None)

    def node_ids(self) -> tuple[int, ...]:
        """Ids of all NUMA nodes, in the order reported, CPU-less ones included (TM-8)."""
        return tuple(node.id for node in self.numa_nodes)

    def cpu_count(self) -> int:
        """Number of CPUs: the reported total, else the number of distinct threads."""
        if self.num_cpus is not None:
            return self.num_cpus
        return len({t for n in self.numa_nodes for c in n.cores for t in c.threads})

    def socket_count(self) -> int:
        """Number of sockets: the reported total, else the number of distinct socket ids."""
        if self.num_sockets is not None:
            return self.num_sockets
        return len({c.socket_id for n in self.numa_nodes for c in n.cores})
