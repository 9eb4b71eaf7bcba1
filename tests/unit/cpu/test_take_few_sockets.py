"""CPUs out of few sockets: which ones are offered, and that no request gets less for it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.cpu.cpu_machines import N8, allocate, engine, held, machine, pod, smt
from tests.unit.cpu.test_cpu_invariants import machines

from numalign.cpu.accumulator import AssignmentError
from numalign.cpu.options import CpuOptions
from numalign.cpu.policy_static import StaticPolicy
from numalign.cpu.sizes import real
from numalign.cpu.take_few_sockets import FewSockets
from numalign.cpu.topology import discover
from numalign.model.cpu_set import CpuSet
from numalign.model.machine import Machine
from numalign.model.settings import CpuSwitches

FEW = CpuSwitches(few_sockets=True)
NUMA, SOCKET = "distribute-cpus-across-numa", "align-by-socket"
SPREAD = CpuOptions(distribute_cpus_across_numa=True, align_by_socket=True)
SMT = machine({0: smt(range(4), 8), 1: smt(range(4, 8), 8, socket=1)})


def offered(where: Machine, free: str, count: int, *, whole_cores: bool = False) -> str:
    seen: list[tuple[CpuSet, int]] = []

    def take(cpus: int, number: int) -> int:
        seen.append((CpuSet(cpus), number))
        return 0

    FewSockets(discover(where), take, whole_cores=whole_cores)(CpuSet.parse(free).bits, count)
    ((cpus, number),) = seen
    assert number == count
    return str(cpus)


@pytest.mark.parametrize(
    ("free", "count", "expected"),
    [
        pytest.param("0-15", 8, "0-7", id="equal-sockets-the-lowest"),
        pytest.param("0-15", 4, "0-7", id="less-than-one"),
        pytest.param("0-6,8-13", 5, "8-13", id="the-fullest-that-has-enough"),
        pytest.param("0-6,8-13", 7, "0-6", id="the-only-one"),
        pytest.param("0-6,8-13", 8, "0-6,8-13", id="both"),
        pytest.param("0-6", 8, "0-6", id="not-enough"),
        pytest.param("", 1, "", id="nothing"),
    ],
)
def test_offered(free: str, count: int, expected: str) -> None:
    assert offered(N8, free, count) == expected


def test_half_cores_do_not_count_with_full_pcpus_only() -> None:
    half = "0-3,8-9,4-7"

    assert offered(SMT, half, 4, whole_cores=True) == "0-3,8-9"
    assert offered(SMT, half, 4) == "4-7"


@pytest.mark.parametrize(
    ("options", "switches", "wrapped"),
    [
        pytest.param((NUMA, SOCKET), FEW, True, id="on"),
        pytest.param((NUMA, SOCKET), CpuSwitches(), False, id="off"),
        pytest.param((NUMA,), FEW, False, id="without-align-by-socket"),
        pytest.param((SOCKET,), FEW, False, id="without-distribution"),
    ],
)
def test_the_switch_needs_both_options(
    options: tuple[str, ...], switches: CpuSwitches, wrapped: bool
) -> None:
    policy = engine(N8, "0", *options, switches=switches).policy

    assert isinstance(policy, StaticPolicy)
    assert isinstance(policy.setup.take, FewSockets) is wrapped


def test_a_pod_is_spread_within_a_socket() -> None:
    which = pod("p", {"a": "4"})
    on = engine(N8, "0,8", NUMA, SOCKET, switches=FEW)
    state = on.start(None).state

    taken = CpuSet.parse(held(allocate(on, state, which, "a").state, "p")["a"])

    assert len(taken) == 4
    assert max(taken) < 8
    (facts,) = on.facts(state, which, which.container("a"))
    assert "fewSockets: over NUMA nodes of as few sockets as possible" in facts.note


@given(where=machines(), data=st.data())
@settings(deadline=None)
def test_as_few_sockets_as_there_can_be_and_nothing_is_refused_for_it(
    where: Machine, data: st.DataObject
) -> None:
    topology = discover(where)
    every = sorted(topology.all_cpus)
    free = CpuSet.of(data.draw(st.sets(st.sampled_from(every), min_size=1))).bits
    count = data.draw(st.integers(1, len(every)))
    take = FewSockets(topology, real(topology, SPREAD))

    if count > free.bit_count():
        with pytest.raises(AssignmentError):
            take(free, count)
        return
    chosen = take(free, count)

    assert chosen & ~free == 0
    assert chosen.bit_count() == count
    sizes = sorted(((s & free).bit_count() for s in topology.sockets.values()), reverse=True)
    fewest = next(k for k in range(1, len(sizes) + 1) if sum(sizes[:k]) >= count)
    assert sum(1 for socket in topology.sockets.values() if socket & chosen) <= fewest
