"""Which pods make room for a critical one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.admission.handlers.admit_pods import CRITICAL, STATIC, pod

from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.failures import NODE_NAME, InsufficientResource
from numalign.admission.handlers.preemption import Preemption, freed, preempt
from numalign.model.feature_gates import FeatureGates

_GATES = FeatureGates()


def _missing(resource: str, amount: int) -> InsufficientResource:
    return InsufficientResource(resource, amount, 0, 0)


def _victims(outcome: Preemption) -> list[str]:
    return [victim.pod.name for victim in outcome.victims]


def _guaranteed(name: str, cpu: str) -> AdmitPod:
    amounts = {"cpu": cpu, "memory": "1Mi"}
    return pod(name, requests=amounts, limits=amounts)


_CRIT = pod("crit", priority=CRITICAL)


def test_others_are_not_rescued() -> None:
    """PRE-1."""
    failures = (_missing("cpu", 1),)

    assert preempt(pod(), failures, [], _GATES) == Preemption(failures)


def test_what_cannot_be_freed_remains_alone() -> None:
    """PRE-2."""
    outcome = preempt(_CRIT, (_missing("cpu", 1), NODE_NAME), [pod("o")], _GATES)

    assert outcome == Preemption((NODE_NAME,))


def test_guaranteed_pods_are_spared() -> None:
    """PRE-6, trap 27."""
    active = [
        pod("bu1", requests={"cpu": "300m"}),
        pod("bu2", requests={"cpu": "900m"}),
        _guaranteed("g1", "1500m"),
    ]

    assert _victims(preempt(_CRIT, (_missing("cpu", 1000),), active, _GATES)) == ["bu2", "bu1"]


def test_the_later_of_two_equal_pods_ends() -> None:
    """PRE-7, trap 28."""
    outcome = preempt(_CRIT, (_missing("pods", 1),), [pod("a"), pod("b")], _GATES)

    assert _victims(outcome) == ["b"]


def test_nothing_to_free_is_an_error() -> None:
    """PRE-3."""
    outcome = preempt(
        _CRIT,
        (_missing("cpu", 500), _missing("memory", 7)),
        [pod("a", requests={"cpu": "1"})],
        _GATES,
    )

    assert outcome.error == (
        "preemption: error finding a set of pods to preempt: no set of running pods found to "
        "reclaim resources: [(res: memory, q: 7), ]"
    )
    assert outcome.victims == ()


def test_a_critical_pod_can_end_for_a_higher_one() -> None:
    """PRE-4."""
    lower = pod("lower", priority=CRITICAL)
    same = pod("same", priority=CRITICAL + 1)
    static = pod("static", metadata=STATIC)
    higher = pod("higher", priority=CRITICAL + 1)
    outcome = preempt(higher, (_missing("pods", 1),), [same, static, lower, higher], _GATES)

    assert _victims(outcome) == ["lower"]


def test_pod_level_resources_free_what_they_name() -> None:
    """PRE-5."""
    victim = pod(
        requests={"cpu": "1", "memory": "1Gi", "example.com/gpu": "1"},
        resources={"requests": {"cpu": "300m"}},
        overhead={"cpu": "50m", "memory": "1Mi"},
    )

    assert freed(victim, "cpu", _GATES) == 350
    assert freed(victim, "memory", _GATES) == 0
    assert freed(victim, "example.com/gpu", _GATES) == 0
    assert freed(victim, "pods", _GATES) == 1


_SIZES = st.lists(st.integers(0, 9), max_size=8)


@settings(deadline=None)
@given(_SIZES, st.integers(1, 30))
def test_victims_suffice_or_there_are_none(sizes: list[int], amount: int) -> None:
    """PRE-6: enough is freed, nobody is named twice, and none could be spared."""
    active = [pod(f"o{i}", requests={"cpu": f"{size}"}) for i, size in enumerate(sizes)]
    outcome = preempt(_CRIT, (_missing("cpu", amount * 1000),), active, _GATES)
    names = _victims(outcome)

    assert len(set(names)) == len(names)
    if sum(sizes) < amount:
        assert outcome.error
        return
    given_back = [freed(victim, "cpu", _GATES) for victim in outcome.victims]
    assert sum(given_back) >= amount * 1000
    assert sum(given_back[:-1]) < amount * 1000
