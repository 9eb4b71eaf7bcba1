from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from numalign.model.feature_gates import FeatureGates
from numalign.model.ids import PodUid
from numalign.model.pod import Container, Pod, Resources
from numalign.model.qos import QosClass, compute_qos_class, is_guaranteed, qos_class
from numalign.model.quantity import Quantity

_GATES = FeatureGates()


def _resources(requests: dict[str, str], limits: dict[str, str]) -> Resources:
    return Resources(
        requests={name: Quantity.parse(text) for name, text in requests.items()},
        limits={name: Quantity.parse(text) for name, text in limits.items()},
    )


_BOTH = {"cpu": "1", "memory": "1Gi"}
_FULL = _resources(_BOTH, _BOTH)


def _pod(*sections: Resources, **more: Any) -> Pod:
    containers = tuple(
        Container(name=f"c{index}", resources=section) for index, section in enumerate(sections)
    )
    return Pod(uid=PodUid("u"), containers=containers, **more)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(_pod(_FULL), "Guaranteed", id="all-equal"),
        pytest.param(_pod(Resources()), "BestEffort", id="nothing"),
        pytest.param(_pod(_FULL, Resources()), "Burstable", id="one-without"),
        pytest.param(_pod(_resources({"cpu": "1"}, _BOTH)), "Burstable", id="memory-not-asked"),
        pytest.param(_pod(_resources({}, _BOTH)), "Burstable", id="requests-not-filled-in"),
        pytest.param(
            _pod(_resources({"cpu": "2", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}),
                 _resources({"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"})),
            "Guaranteed", id="only-sums-are-compared"),
        pytest.param(
            _pod(_resources({"cpu": "0", "memory": "0"}, {"cpu": "0", "memory": "0"})),
            "BestEffort", id="zeros-do-not-count"),
        pytest.param(
            _pod(_resources({"example.com/gpu": "1"}, {"example.com/gpu": "1"})),
            "BestEffort", id="other-resources-do-not-count"),
        pytest.param(_pod(_FULL, resources=Resources()), "BestEffort", id="empty-pod-level"),
        pytest.param(_pod(Resources(), resources=_FULL), "Guaranteed", id="pod-level-decides"),
        pytest.param(
            _pod(_FULL, resources=_resources({"cpu": "1"}, {"cpu": "1"})),
            "Burstable", id="pod-level-without-memory"),
    ],
)  # fmt: skip
def test_computed(pod: Pod, expected: str) -> None:
    assert compute_qos_class(pod, _GATES) == expected


def test_without_the_gate_the_pod_level_does_not_count() -> None:
    pod = _pod(_FULL, resources=Resources())

    assert compute_qos_class(pod, FeatureGates(pod_level_resources=False)) is QosClass.GUARANTEED
    assert compute_qos_class(pod, _GATES) is QosClass.BEST_EFFORT
    assert compute_qos_class(pod, FeatureGates(pod_level_resources=False)) is QosClass.GUARANTEED


def test_a_changed_pod_is_another_one() -> None:
    pod = _pod(_FULL)
    assert compute_qos_class(pod, _GATES) is QosClass.GUARANTEED
    assert compute_qos_class(replace(pod, containers=()), _GATES) is QosClass.BEST_EFFORT
    assert pod == _pod(_FULL)


def test_the_status_comes_first() -> None:
    assert qos_class(_pod(_FULL, status_qos_class="BestEffort"), _GATES) == "BestEffort"
    assert qos_class(_pod(_FULL, status_qos_class="Odd"), _GATES) == "Odd"
    assert is_guaranteed(_pod(status_qos_class="Guaranteed"), _GATES)
    assert is_guaranteed(_pod(_FULL), _GATES)
    assert not is_guaranteed(_pod(_FULL, status_qos_class="Burstable"), _GATES)
