"""Two ways to size the elements of an uneven machine; one of them is chosen at start.

The kubelet judges cores, caches and sockets by averages, so on a machine with elements of
different sizes it may take CPUs that were not offered (CPU-52, CPU-55). `averaged` lets such
a choice stand. `real` notices it and decides again by the real sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from numalign.cpu.accumulator import AssignmentError
from numalign.cpu.options import CpuOptions
from numalign.cpu.order import averaged_layout, real_layout
from numalign.cpu.take import Taker, taker
from numalign.cpu.topology import CpuTopology

Sizes: TypeAlias = Callable[[CpuTopology, CpuOptions], Taker]
"""How a taker is built for a machine and a set of options."""


def averaged(topology: CpuTopology, options: CpuOptions) -> Taker:
    """The kubelet's choice, whatever it is."""
    return taker(averaged_layout(topology), options, topology.group_size)


def real(topology: CpuTopology, options: CpuOptions) -> Taker:
    """The kubelet's choice where it is sound, else the choice by real sizes.

    Not sound is a choice with a CPU that was not offered or of another size than asked for,
    and a failure that real sizes avoid.
    """
    by_average = averaged(topology, options)
    real_sizes, average_sizes = real_layout(topology), averaged_layout(topology)
    if real_sizes == average_sizes:
        return by_average
    by_size = taker(real_sizes, options, topology.group_size)

    def checked(offered: int, count: int) -> int:
        try:
            chosen = by_average(offered, count)
        except AssignmentError:
            return by_size(offered, count)
        if chosen & ~offered or chosen.bit_count() != max(count, 0):
            return by_size(offered, count)
        return chosen

    return checked
