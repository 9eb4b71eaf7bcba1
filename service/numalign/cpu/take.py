"""Which algorithm chooses CPUs, by the options of the policy. Rule CPU-51."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from numalign.cpu.options import CpuOptions
from numalign.cpu.order import Layout
from numalign.cpu.take_distributed import take_distributed
from numalign.cpu.take_packed import take_packed

Taker: TypeAlias = Callable[[int, int], int]
"""(offered CPUs as bits, how many) to the CPUs chosen; raises AssignmentError."""


def taker(layout: Layout, options: CpuOptions, group_size: int) -> Taker:
    """The algorithm for `options` on `layout`; `group_size` is that of CPU-21."""
    spread = options.distribute_cpus_across_cores
    if options.distribute_cpus_across_numa:
        group = group_size if options.full_pcpus_only else 1

        def distributed(offered: int, count: int) -> int:
            return take_distributed(layout, offered, count, group=group, spread=spread)

        return distributed

    uncore = options.prefer_align_cpus_by_uncorecache

    def packed(offered: int, count: int) -> int:
        return take_packed(layout, offered, count, spread=spread, uncore=uncore)

    return packed
