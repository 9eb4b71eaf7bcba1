"""User cases about CPUs: uc-09, uc-19, uc-22, uc-23 and uc-29 of user-cases.jsonl."""

from __future__ import annotations

import pytest
from tests.unit.cpu.cpu_machines import (
    PLRM,
    allocate,
    allocate_whole,
    core,
    engine,
    hint,
    hints,
    machine,
    place,
    pod,
    single,
)

from numalign.cpu.engine import CpuEngine
from numalign.cpu.policy_static import StaticPolicy
from numalign.cpu.strategies import KUBELET, SAFE, CpuStrategies
from numalign.model.cpu_set import CpuSet
from numalign.model.ids import PodUid
from numalign.model.machine import Core, Machine

P = PodUid("p")

HYBRID = machine({0: [core(c, c + 1) for c in range(0, 16, 2)] + single(range(16, 28))})


def _core_with_95_offline(first: int, socket: int) -> Core:
    return core(*(t for t in (first, first + 48) if t != 95), socket=socket)


OFFLINE_95 = machine(
    {n: [_core_with_95_offline(c, n) for c in range(24 * n, 24 * n + 24)] for n in range(2)}
)


def cpus_of(by: CpuEngine, count: int) -> CpuSet:
    state = place(by, by.start(None).state, pod("p", {"a": str(count)}))
    return state.assignments[P]["a"]


def test_uc_09_half_reserved_cores_are_refused() -> None:
    where = machine({n: [core(c, c + 6, socket=n) for c in range(n, 6, 2)] for n in range(2)})
    by = engine(where, "1,6", "full-pcpus-only", topology_policy="none")

    failure = allocate(by, by.start(None).state, pod("p", {"a": "10"}), "a").failure

    assert failure is not None
    assert failure.reason == "SMTAlignmentError"
    assert "available physical CPUs = 8, requested CPUs = 10" in failure.message
    taken = cpus_of(by, 8)
    assert taken.isdisjoint(CpuSet.parse("0-1,6-7"))


@pytest.mark.parametrize("strategies", [KUBELET, SAFE], ids=["kubelet", "safe"])
@pytest.mark.parametrize("cpus", [4, 6])
def test_uc_19_a_pod_keeps_its_set_over_a_restart(strategies: CpuStrategies, cpus: int) -> None:
    where = machine({0: single(range(cpus))})
    by = engine(where, "0", strategies=strategies, gates=PLRM)
    whole = pod("p", {"a": "2"}, pod_cpu="2")
    state = allocate_whole(by, by.start(None).state, whole).state

    restarted = by.start(by.encode(state))

    assert str(by.pod_holding(restarted.state, P).cpus) == "1-2"
    assert restarted.state == state
    assert restarted.reports == ()
    assert hints(by, restarted.state, whole) == {"cpu": (hint(0),)}


def test_uc_22_uneven_cores_give_no_reserved_cpu() -> None:
    assert str(cpus_of(engine(HYBRID, "0", strategies=KUBELET), 2)) == "0-1"
    assert str(cpus_of(engine(HYBRID, "0", strategies=SAFE), 2)) == "16-17"


def test_uc_23_an_offline_cpu_does_not_shift_the_others() -> None:
    by = engine(OFFLINE_95, "", strategies=SAFE, reserved_milli_cpu=4000)
    assert str(by.reserved) == "24-25,47,72"
    state = place(by, by.start(None).state, pod("p", {"a": "20"}))

    taken = state.assignments[P]["a"]

    assert len(taken) == 20
    assert taken.isdisjoint(CpuSet.parse("24-25,47,72,95"))
    assert by.start(by.encode(state)).state.assignments == state.assignments
    refusing = engine(OFFLINE_95, "", strategies=KUBELET, reserved_milli_cpu=4000)
    assert refusing.start(by.encode(state)).state.assignments == state.assignments
    assert 25 in cpus_of(refusing, 20)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("nodes", [2, 3, 4])
def test_uc_29_every_even_request_is_answered(nodes: int) -> None:
    where: Machine = machine(
        {n: [core(c, c + 48, socket=n) for c in range(6 * n, 6 * n + 6)] for n in range(nodes)}
    )
    reserved = ",".join(str(6 * n) for n in range(nodes))
    options = ("full-pcpus-only", "distribute-cpus-across-numa")
    by = engine(where, reserved, *options, strategies=SAFE)
    policy = by.policy
    assert isinstance(policy, StaticPolicy)
    offered = by.allocatable.bits

    for count in range(2, 11 * nodes + 1, 2):
        chosen = policy.setup.take(offered, count)
        assert chosen.bit_count() == count
        assert chosen & ~offered == 0
