"""The algorithm of `distribute-cpus-across-numa`: an even share of CPUs from several nodes.

Which nodes is decided in `distribution`; here the CPUs are handed out. Rules CPU-63, CPU-64.
"""

from __future__ import annotations

from collections.abc import Sequence

from numalign.cpu.accumulator import Accumulator, AssignmentError
from numalign.cpu.distribution import Distribution
from numalign.cpu.order import Layout
from numalign.cpu.take_packed import check_enough, take_packed


def take_distributed(
    layout: Layout, offered: int, count: int, *, group: int, spread: bool = False
) -> int:
    """Choose `count` CPUs out of `offered` (bits), handed out in groups of `group` CPUs.

    Falls back to the packed algorithm where groups do not add up to the request or no
    combination of nodes does. Raises AssignmentError (CPU-45).
    """
    if count % group:
        return take_packed(layout, offered, count, spread=spread)
    run = Accumulator(layout, offered, count)
    if run.is_satisfied():
        return 0
    check_enough(offered, count)
    nodes = [node.bits for node in run.nodes()]
    distribution = Distribution([(bits & offered).bit_count() for bits in nodes], count, group)
    per_node = _ceil_div(_ceil_div(layout.num_cpus, group), layout.num_nodes)
    needed = _ceil_div(count, group)
    for size in range(_ceil_div(needed, per_node), min(needed, len(nodes)) + 1):
        found = distribution.over(size)
        if found is not None:
            _hand_out(run, [nodes[i] for i in found.nodes], found.share, spread=spread)
            takers = [nodes[i] for i in found.takers]
            _hand_out_rest(run, takers, found.rest, group, spread=spread)
            return _checked(run)
    return take_packed(layout, offered, count, spread=spread)


def _hand_out(run: Accumulator, nodes: Sequence[int], share: int, *, spread: bool) -> None:
    """Take `share` CPUs from each node."""
    for node in nodes:
        run.take(_packed_or_nothing(run, node, share, spread=spread))


def _hand_out_rest(
    run: Accumulator, nodes: Sequence[int], rest: int, group: int, *, spread: bool
) -> None:
    """Take `rest` CPUs in groups from the nodes in turn.

    Stops when a whole round gave nothing: the accounting check then tells.
    """
    while rest > 0:
        before = rest
        for node in nodes:
            if rest == 0:
                break
            if (node & run.free).bit_count() >= group:
                run.take(_packed_or_nothing(run, node, group, spread=spread))
                rest -= group
        if rest == before:
            return


def _packed_or_nothing(run: Accumulator, node: int, count: int, *, spread: bool) -> int:
    """CPUs of one node; a failure counts as taking nothing (CPU-64)."""
    try:
        return take_packed(run.layout, node & run.free, count, spread=spread)
    except AssignmentError:
        return 0


def _checked(run: Accumulator) -> int:
    if run.need > 0:
        raise AssignmentError(f"accounting error, not enough CPUs allocated, remaining: {run.need}")
    if run.need < 0:
        raise AssignmentError(f"accounting error, too many CPUs allocated, remaining: {run.need}")
    return run.result


def _ceil_div(a: int, b: int) -> int:
    return (a - 1) // b + 1
