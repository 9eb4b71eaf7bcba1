"""The packed algorithm: whole nodes and sockets, then whole cores, then single CPUs.

Rules CPU-52..CPU-57 and CPU-62.
"""

from __future__ import annotations

from numalign.cpu.accumulator import Accumulator, AssignmentError
from numalign.cpu.order import Layout
from numalign.cpu.take_uncore import take_uncore_caches


def take_packed(
    layout: Layout, offered: int, count: int, *, spread: bool = False, uncore: bool = False
) -> int:
    """Choose `count` CPUs out of `offered`; both sets are bits.

    `spread` skips whole cores and takes single CPUs by id (CPU-62), `uncore` prefers one
    cache (CPU-58). Raises AssignmentError if there are not enough (CPU-53).
    """
    run = Accumulator(layout, offered, count)
    if run.is_satisfied():
        return 0
    check_enough(offered, count)
    run.take_whole(run.first_level())
    if run.is_satisfied():
        return run.result
    run.take_whole(run.second_level())
    if run.is_satisfied():
        return run.result
    if uncore:
        take_uncore_caches(run)
        if run.is_satisfied():
            return run.result
    if spread:
        run.take_singles(run.spread_cpus())
    else:
        run.take_whole(run.cores())
        if run.is_satisfied():
            return run.result
        run.take_singles(run.packed_cpus())
    if run.is_satisfied():
        return run.result
    raise AssignmentError("failed to allocate cpus")


def check_enough(offered: int, count: int) -> None:
    """Raise AssignmentError if fewer than `count` CPUs are offered (CPU-53)."""
    available = offered.bit_count()
    if count > available:
        raise AssignmentError(
            "not enough cpus available to satisfy request: "
            f"requested={count}, available={available}"
        )
