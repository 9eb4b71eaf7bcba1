"""What could be had of each node: the engine itself must agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cpu.cpu_machines import allocate, core, engine, hint, machine, place, pod

from numalign.cpu.messages import CpuBooks
from numalign.cpu.node_numbers import managed_nodes
from numalign.cpu.policy_static import StaticPolicy
from numalign.model.cpu_set import CpuSet

WHERE = machine(
    {n: [core(2 * c, 2 * c + 1, socket=n) for c in range(4 * n, 4 * n + 4)] for n in range(2)}
)


@pytest.mark.parametrize("options", [(), ("full-pcpus-only",)], ids=["plain", "whole cores"])
@given(taken=st.lists(st.integers(1, 2), max_size=3), reserved=st.sampled_from(["0", "0-1", "1,9"]))
def test_the_largest_fits_and_no_more_does(
    options: tuple[str, ...], taken: list[int], reserved: str
) -> None:
    by = engine(WHERE, reserved, *options, topology_policy="best-effort")
    assert isinstance(by.policy, StaticPolicy)
    step = 2 if options else 1
    state = by.start(None).state
    for index, count in enumerate(taken):
        state = place(by, state, pod(f"p{index}", {"a": str(count * step)}))

    for node in managed_nodes(by.policy.setup, state):
        assert node.free == by.policy.setup.available(state) & node.cpus
        for count in (node.largest, node.largest + step):
            if count == 0:
                continue
            asked = pod("new", {"a": str(count)})
            outcome = allocate(by, state, asked, "a", hint(node.node))
            inside = outcome.failure is None and outcome.state.assignments[asked.uid]["a"].issubset(
                node.cpus
            )
            assert inside == (count == node.largest)


def test_the_books_tell_every_node() -> None:
    by = engine(WHERE, "0")
    state = place(by, by.start(None).state, pod("p", {"a": "3"}))

    nodes = CpuBooks(by).state_message(state).cpu.nodes

    assert [(n.numa_node, n.cpus) for n in nodes] == [(0, "0-7"), (1, "8-15")]
    assert sum(n.largest for n in nodes) == 16 - 1 - 3
    assert CpuSet.parse(nodes[0].free) | CpuSet.parse(nodes[1].free) == state.default - by.reserved
