"""One run of the assignment algorithm: what is free, what is still needed, what was taken.

The only mutable value of the package, alive for one call of `take`. Its steps are what the
packed, the uncore and the distributed algorithm are put together from.
Rules CPU-52..CPU-56.
"""

from __future__ import annotations

from collections.abc import Iterator

from numalign.cpu.order import Element, Layout, ranked


class AssignmentError(Exception):
    """CPUs cannot be taken; the message is the kubelet's (CPU-45)."""


class Accumulator:
    """Free CPUs, need and result of one run; CPU sets are bits of integers."""

    __slots__ = ("free", "layout", "need", "result")

    def __init__(self, layout: Layout, free: int, need: int) -> None:
        self.layout = layout
        self.free = free
        self.need = need
        self.result = 0

    def is_satisfied(self) -> bool:
        """Whether nothing is needed any more (CPU-52)."""
        return self.need < 1

    def take(self, cpus: int) -> None:
        """Take `cpus`; all of them count, also those that were not free (CPU-52)."""
        self.result |= cpus
        self.free &= ~self.result
        self.need -= cpus.bit_count()

    def first_level(self) -> list[Element]:
        """NUMA nodes or sockets, whichever the machine is looked at by first."""
        return ranked(self.layout.first, self.free)

    def second_level(self) -> list[Element]:
        """Sockets or NUMA nodes, in the order of the first level."""
        second, free = self.layout.second, self.free
        return [e for parent in self.first_level() for e in ranked(second[parent.id], free)]

    def nodes(self) -> list[Element]:
        """NUMA nodes with a free CPU, in order."""
        return self.first_level() if self.layout.nodes_first else self.second_level()

    def sockets(self) -> list[Element]:
        """Sockets with a free CPU, in order."""
        return self.second_level() if self.layout.nodes_first else self.first_level()

    def uncores(self) -> list[Element]:
        """Uncore caches with a free CPU, in order."""
        uncores, free = self.layout.uncores, self.free
        return [e for node in self.nodes() for e in ranked(uncores[node.id], free)]

    def cores(self) -> list[Element]:
        """Cores with a free CPU, in order."""
        cores, free = self.layout.cores, self.free
        return [e for parent in self.second_level() for e in ranked(cores[parent.id], free)]

    def take_whole(self, order: list[Element]) -> None:
        """Take the fully free elements of `order` that the need is large enough for (CPU-55)."""
        free = self.free
        whole = [e for e in order if (e.bits & free).bit_count() == e.full]
        for element in whole:
            if self.need >= element.size:
                self.take(element.bits)

    def take_singles(self, cpus: Iterator[int]) -> None:
        """Take one CPU (as a bit) after the other until satisfied (CPU-56)."""
        for cpu in cpus:
            self.take(cpu)
            if self.is_satisfied():
                return

    def packed_cpus(self) -> Iterator[int]:
        """The free CPUs as bits: core after core, each by id."""
        free = self.free
        for core in self.cores():
            yield from bits_of(core.bits & free)

    def spread_cpus(self) -> Iterator[int]:
        """The free CPUs as bits: socket after socket, each by id."""
        free = self.free
        for socket in self.sockets():
            yield from bits_of(socket.bits & free)


def bits_of(cpus: int) -> Iterator[int]:
    """The single bits of `cpus`, lowest first."""
    while cpus:
        low = cpus & -cpus
        yield low
        cpus ^= low
