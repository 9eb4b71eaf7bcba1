"""A pod takes its recorded CPUs back where the books have lost them."""

from __future__ import annotations

import pytest
from tests.unit.cpu.cpu_machines import PLRM, T8, engine

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
