"""CPUs out of few caches: which ones, and what holds for any machine and any free CPUs."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.cpu.cpu_machines import U16, allocate, core, engine, held, machine, pod, smt
from tests.unit.cpu.test_cpu_invariants import machines

from numalign.cpu.accumulator import AssignmentError
from numalign.cpu.policy_static import StaticPolicy
from numalign.cpu.take_few_caches import FewCaches
from numalign.cpu.topology import CpuTopology, discover
from numalign.model.cpu_set import CpuSet
from numalign.model.machine import Machine
from numalign.model.settings import CpuSwitches

FEW = CpuSwitches(few_caches=True)
UNCORE = "prefer-align-cpus-by-uncorecache"
TWO_NODES = machine(
    {
        0: smt(range(4), 16, uncore=0) + smt(range(4, 8), 16, uncore=1),
        1: smt(range(8, 12), 16, socket=1, uncore=2) + smt(range(12, 16), 16, socket=1, uncore=3),
    }
)
HYBRID = machine(
    {0: [core(0, 1, uncore=0), core(2, 3, uncore=0), *(core(c, uncore=1) for c in range(4, 8))]}
)


def taken(where: Machine, free: str, count: int, *, whole_cores: bool = False) -> str:
    take = FewCaches(discover(where), whole_cores=whole_cores)
    return str(CpuSet(take(CpuSet.parse(free).bits, count)))


@pytest.mark.parametrize(
    ("where", "free", "count", "expected"),
    [
        pytest.param(U16, "3,5,7,11-15", 5, "5,7,12-13,15", id="uc-25"),
        pytest.param(U16, "0-15", 8, "0-3,8-11", id="a-whole-cache"),
        pytest.param(U16, "0-15", 3, "0-1,8", id="equal-caches-the-lowest"),
        pytest.param(U16, "0-3,8-11,4-6,12-14", 4, "4-5,12-13", id="the-fuller-cache"),
        pytest.param(U16, "0-3,4-5,12-13", 4, "4-5,12-13", id="whole-cores-before-lower-ones"),
        pytest.param(U16, "0-3,4-7", 4, "0-3", id="half-cores-where-there-are-no-others"),
        pytest.param(U16, "0-1,8-9,4-5,12-13", 6, "0-1,4,8-9,12", id="two-caches-whole-cores"),
        pytest.param(U16, "0-2,8-9,4-5,12-13", 6, "0-1,4,8-9,12", id="two-caches-no-half-core"),
        pytest.param(U16, "0-15", 0, "", id="nothing"),
        pytest.param(TWO_NODES, "0-31", 16, "0-7,16-23", id="a-whole-node"),
        pytest.param(
            TWO_NODES,
            "0-1,4-5,16-17,20-21,8-10,24-25",
            5,
            "8-10,24-25",
            id="node-with-fewest-caches",
        ),
        pytest.param(
            TWO_NODES, "0-1,4-5,16-17,20-21,8-9", 6, "0-1,4,16-17,20", id="one-node-before-two"
        ),
        pytest.param(
            TWO_NODES, "0-3,16-19,4-5,8-9,24-25", 12, "0-3,8-9,16-19,24-25", id="two-nodes"
        ),
        pytest.param(HYBRID, "0-7", 4, "0-3", id="hybrid"),
        pytest.param(HYBRID, "0,2,4-7", 2, "4-5", id="hybrid-single-threads-are-whole"),
    ],
)
def test_which(where: Machine, free: str, count: int, expected: str) -> None:
    assert taken(where, free, count) == expected


@pytest.mark.parametrize(
    ("free", "count", "expected"),
    [
        pytest.param("1-3,8-11,4-5,12-13", 4, "4-5,12-13", id="whole-ones"),
        pytest.param("0-3,8,4-5,12", 6, "0-2,4,8,12", id="too-few-whole-ones"),
    ],
)
def test_with_full_pcpus_only(free: str, count: int, expected: str) -> None:
    assert taken(U16, free, count, whole_cores=True) == expected


def test_too_few() -> None:
    with pytest.raises(AssignmentError, match="requested=3, available=2"):
        taken(U16, "0-1", 3)


def test_the_switch_needs_the_option_and_leaves_what_is_reserved() -> None:
    on = engine(U16, "", UNCORE, switches=FEW, reserved_milli_cpu=3000)
    without_option = engine(U16, "", switches=FEW, reserved_milli_cpu=3000)
    off = engine(U16, "", UNCORE, reserved_milli_cpu=3000)

    assert on.reserved == off.reserved
    assert isinstance(on.policy, StaticPolicy)
    assert isinstance(without_option.policy, StaticPolicy)
    assert isinstance(on.policy.setup.take, FewCaches)
    assert not isinstance(without_option.policy.setup.take, FewCaches)


def test_a_pod_gets_them() -> None:
    by = engine(U16, "0-2,4,6,8-10", UNCORE, switches=FEW)
    which = pod("p", {"a": "5"})
    state = by.start(None).state

    assert held(allocate(by, state, which, "a").state, "p") == {"a": "5,7,12-13,15"}
    (facts,) = by.facts(state, which, which.container("a"))
    assert "fewUncoreCaches: whole cores of as few caches as possible" in facts.note


def caches_of(topology: CpuTopology, cpus: int) -> int:
    return sum(1 for cache in topology.uncores.values() if cache & cpus)


def nodes_of(topology: CpuTopology, cpus: int) -> int:
    return sum(1 for node in topology.nodes.values() if node & cpus)


@given(where=machines(), data=st.data())
@settings(deadline=None)
def test_as_few_nodes_and_caches_as_there_can_be(where: Machine, data: st.DataObject) -> None:
    topology = discover(where)
    free = CpuSet.of(
        data.draw(st.sets(st.sampled_from(sorted(topology.all_cpus)), min_size=1))
    ).bits
    count = data.draw(st.integers(1, free.bit_count()))

    chosen = FewCaches(topology)(free, count)

    assert chosen & ~free == 0
    assert chosen.bit_count() == count
    one = [node & free for node in topology.nodes.values() if (node & free).bit_count() >= count]
    if not one:
        return
    assert nodes_of(topology, chosen) == 1
    fewest = min(
        number
        for node in one
        for number in range(1, len(topology.uncores) + 1)
        for several in combinations(topology.uncores.values(), number)
        if (sum(several) & node).bit_count() >= count
    )
    assert caches_of(topology, chosen) == fewest


@given(where=machines(), data=st.data())
@settings(deadline=None)
def test_no_whole_core_is_left_where_half_ones_were_taken(
    where: Machine, data: st.DataObject
) -> None:
    topology = discover(where)
    free = CpuSet.of(
        data.draw(st.sets(st.sampled_from(sorted(topology.all_cpus)), min_size=1))
    ).bits
    count = data.draw(st.integers(1, free.bit_count()))

    chosen = FewCaches(topology)(free, count)

    touched = sum(cache for cache in topology.uncores.values() if cache & chosen)
    broken = sum((core & chosen).bit_count() for core in topology.cores.values() if core & ~chosen)
    for whole in topology.cores.values():
        if whole & free == whole and whole & touched == whole and not whole & chosen:
            assert whole.bit_count() > broken
