"""A pod takes its recorded CPUs back where the books have lost them."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cpu.cpu_machines import PLRM, T8, T16, allocate, engine, pod

from numalign.cpu.state import CpuState
from numalign.cpu.strategies import SAFE
from numalign.model.cpu_set import CpuSet
from numalign.model.ids import PodUid
from numalign.provider.engine import Lost, Recorded
from numalign.provider.values import Holding, PodHolding

P = PodUid("p")


def recorded(pod_set: str = "", **cpus: str) -> Recorded:
    return Recorded(
        pod_uid=P,
        holdings=tuple(Holding(container=c, cpus=CpuSet.parse(s)) for c, s in cpus.items()),
        pod_holding=PodHolding(cpus=CpuSet.parse(pod_set)),
    )


def held(state: CpuState) -> dict[str, str]:
    return {container: str(cpus) for container, cpus in state.assignments.get(P, {}).items()}


def test_everything_that_is_free_comes_back() -> None:
    by = engine(T8, strategies=SAFE)

    restored = by.restore(by.start(None).state, recorded(i="1", a="1,5", b="2"))

    assert restored.lost == ()
    assert held(restored.state) == {"i": "1", "a": "1,5", "b": "2"}
    assert str(restored.state.default) == "0,3-4,6-7"


@pytest.mark.parametrize(
    ("reserved", "policy", "cpus", "why"),
    [
        pytest.param("0,1", "static", "1,5", 'CPUs "1,5": "1" reserved now', id="reserved"),
        pytest.param("0", "static", "5,9", 'CPUs "5,9": "9" not on the machine', id="gone"),
        pytest.param("0", "static", "3,5", 'CPUs "3,5": "3" held by another pod', id="taken"),
        pytest.param(
            "", "none", "5", 'CPUs "5": the policy none gives no exclusive CPUs', id="policy"
        ),
    ],
)
def test_what_cannot_come_back_is_named_and_the_rest_does(
    reserved: str, policy: str, cpus: str, why: str
) -> None:
    by = engine(T8, reserved, policy=policy, strategies=SAFE)
    other = Recorded(
        pod_uid=PodUid("other"), holdings=(Holding(container="c", cpus=CpuSet.parse("3")),)
    )
    state = by.restore(by.start(None).state, other).state

    restored = by.restore(state, recorded(a=cpus, b="6"))

    assert Lost(container="a", message=why) in restored.lost
    assert held(restored.state) == ({} if policy == "none" else {"b": "6"})


def test_what_the_pod_holds_already_stays() -> None:
    by = engine(T8, strategies=SAFE)
    state = by.restore(by.start(None).state, recorded(a="1")).state

    again = by.restore(state, recorded(a="2", b="3"))

    assert held(again.state) == {"a": "1", "b": "3"}


def test_a_set_of_the_pod_comes_back_with_its_containers() -> None:
    by = engine(T8, gates=PLRM, strategies=SAFE)

    restored = by.restore(by.start(None).state, recorded("1-3", a="1", b="2-3"))

    assert restored.state.pod_sets == {P: CpuSet.parse("1-3")}
    assert str(restored.state.default) == "0,4-7"
    assert by.release(restored.state, P) == by.start(None).state


def test_a_set_that_cannot_come_back_leaves_nothing_behind() -> None:
    by = engine(T8, "0,1", gates=PLRM, strategies=SAFE)

    restored = by.restore(by.start(None).state, recorded("1-3", a="1-3"))

    assert restored.state == by.start(None).state
    assert [lost.container for lost in restored.lost] == ["", "a"]


@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=6),
    init=st.integers(0, 3),
    order=st.randoms(use_true_random=False),
)
def test_books_that_were_lost_come_back_whole(sizes: list[int], init: int, order: Random) -> None:
    by = engine(T16, strategies=SAFE)
    state = by.start(None).state
    pods = []
    for number, size in enumerate(sizes):
        phases = {"i": str(init)} if init else None
        one = pod(f"p{number}", {"c": str(size)}, phases)
        for each in one.all_containers():
            outcome = allocate(by, state, one, each.name)
            if outcome.failure is not None:
                break
            state = outcome.state
        pods.append(one.uid)
    recorded_pods = [
        Recorded(
            pod_uid=uid,
            holdings=by.holdings(state, uid),
            pod_holding=by.pod_holding(state, uid),
        )
        for uid in pods
    ]
    order.shuffle(recorded_pods)

    found = by.start(None).state
    for lost_pod in recorded_pods:
        restored = by.restore(found, lost_pod)
        assert restored.lost == ()
        found = restored.state

    assert json.loads(by.encode(found)) == json.loads(by.encode(state))
