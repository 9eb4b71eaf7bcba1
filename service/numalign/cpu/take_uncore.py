"""The step of `prefer-align-cpus-by-uncorecache`: whole caches, then a fitting part of one.

Rules CPU-58..CPU-61.
"""

from __future__ import annotations

from numalign.cpu.accumulator import Accumulator
from numalign.cpu.order import Element


def take_uncore_caches(run: Accumulator) -> None:
    """Take from uncore caches what fits; what is left is for the steps that follow (CPU-58)."""
    for uncore in run.uncores():
        if run.need >= uncore.average:
            # All fully free caches, in fresh order, not only this one.
            run.take_whole(run.uncores())
            if run.is_satisfied():
                return
        _take_part(run, uncore)
        if run.is_satisfied():
            return


def _take_part(run: Accumulator, uncore: Element) -> None:
    """Take exactly what is needed from the lowest cores of one cache, or nothing (CPU-59)."""
    cpus = 0
    expected = 0
    threads = 0
    within = uncore.bits & run.free
    for core in run.layout.uncore_cores[uncore.id]:
        if expected >= run.need:
            break
        if not core.bits & within:
            continue
        cpus |= core.bits & run.free
        expected += core.full
        threads = core.full
    if run.need % 2 and threads > 1 and cpus.bit_count() > run.need:
        cpus ^= 1 << (cpus.bit_length() - 1)
    if cpus.bit_count() == run.need:
        run.take(cpus)
