"""Whole cores out of as few last-level caches as possible; in place of the kubelet's way.

The kubelet tries one cache after the other with its lowest cores, and passes one over that would
have had enough (CPU-59, CPU-60). Here the caches are chosen first and the cores in them after, so
that neither a half core nor the order of caches is in the way. Separate from the packed algorithm,
which stays the kubelet's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numalign.cpu.accumulator import bits_of
from numalign.cpu.take_packed import check_enough
from numalign.cpu.topology import CpuTopology


@dataclass(frozen=True, slots=True)
class FewCaches:
    """Takes CPUs on one machine; sets of CPUs are bits.

    A request stays on one socket and NUMA node where one has enough, and is given the fullest of
    those that need equally few caches. `whole_cores`: as full-pcpus-only wants it, only cores that
    are wholly free are looked at, as long as they have enough.
    """

    topology: CpuTopology
    whole_cores: bool = False

    def __call__(self, offered: int, count: int) -> int:
        """Choose `count` CPUs out of `offered`. Raises AssignmentError if there are not enough."""
        if count < 1:
            return 0
        check_enough(offered, count)
        if self.whole_cores:
            whole = sum(self._whole_cores(offered))
            if whole.bit_count() >= count:
                offered = whole
        return self._cores(self._caches(self._levels(), offered, count), count)

    def _levels(self) -> tuple[Sequence[int], ...]:
        """Sockets and NUMA nodes, the larger ones first, then caches."""
        nodes, sockets = tuple(self.topology.nodes.values()), tuple(self.topology.sockets.values())
        outer = (nodes, sockets) if len(sockets) >= len(nodes) else (sockets, nodes)
        return (*outer, tuple(self.topology.uncores.values()))

    def _caches(self, levels: Sequence[Sequence[int]], free: int, need: int) -> list[int]:
        """The free CPUs of the caches to take from, in the order in which they are used up."""
        if not levels:
            return [free]
        level, *inner = levels
        chosen: list[int] = []
        while True:
            parts = [element & free for element in level if element & free]
            enough = [part for part in parts if part.bit_count() >= need]
            if enough:
                options = [self._caches(inner, part, need) for part in enough]
                return chosen + min(options, key=lambda option: self._cost(option, need))
            largest = max(parts, key=int.bit_count)
            chosen += [c & largest for c in self.topology.uncores.values() if c & largest]
            free &= ~largest
            need -= largest.bit_count()

    def _cost(self, caches: Sequence[int], need: int) -> tuple[int, int, int]:
        """How many caches, how many CPUs on broken cores, how many CPUs the caches have free."""
        taken = self._cores(caches, need)
        on_whole = sum(self._whole_cores(taken)).bit_count()
        touched = [cache for cache in caches if cache & taken]
        return len(touched), need - on_whole, sum(map(int.bit_count, touched))

    def _cores(self, caches: Sequence[int], need: int) -> int:
        """`need` CPUs of `caches`: whole cores, then half ones, then a part of a whole one."""
        taken = 0
        for cache in caches:
            for core in self._whole_cores(cache):
                if core.bit_count() <= need:
                    taken |= core
                    need -= core.bit_count()
        left = [core & cache & ~taken for cache in caches for core in self._cores_in(cache)]
        # The sort keeps the order of caches and cores among equally full ones.
        for core in sorted(left, key=int.bit_count):
            for cpu in bits_of(core):
                if need:
                    taken |= cpu
                    need -= 1
        return taken

    def _whole_cores(self, free: int) -> list[int]:
        return [core for core in self._cores_in(free) if core & free == core]

    def _cores_in(self, free: int) -> list[int]:
        """The cores that have a CPU in `free`, by id."""
        cores, core_of = self.topology.cores, self.topology.core_of
        found = []
        while free:
            core = cores[core_of[(free & -free).bit_length() - 1]]
            found.append(core)
            free &= ~core
        return sorted(found, key=_lowest)


def _lowest(cpus: int) -> int:
    return cpus & -cpus
