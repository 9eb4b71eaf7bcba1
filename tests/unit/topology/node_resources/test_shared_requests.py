from __future__ import annotations

import pytest

from numalign.model.feature_gates import FeatureGates
from numalign.model.ids import PodUid
from numalign.model.pod import Container, Pod, Resources
from numalign.model.quantity import Quantity
from numalign.topology.node_resources.shared_requests import shared_millicores

GATES = FeatureGates()


def asks(cpu: str) -> Resources:
    return Resources(requests={"cpu": Quantity.parse(cpu)})


def pod(level: str | None = None) -> Pod:
    return Pod(
        uid=PodUid("p"),
        init_containers=(
            Container(name="setup", resources=asks("4"), is_init=True),
            Container(name="side", resources=asks("200m"), is_init=True, restartable=True),
        ),
        containers=(
            Container(name="main", resources=asks("2")),
            Container(name="idle", resources=asks("1300m")),
            Container(name="free"),
        ),
        resources=None if level is None else asks(level),
    )


@pytest.mark.parametrize(
    ("level", "exclusive", "own", "expected"),
    [
        pytest.param(None, set(), False, 3500, id="everything that keeps running"),
        pytest.param(None, {"main"}, False, 1500, id="less what is exclusive"),
        pytest.param(None, {"setup", "main"}, False, 1500, id="init containers never count"),
        pytest.param("5", set(), False, 5000, id="the pod level counts instead"),
        pytest.param("5", {"main"}, False, 3000, id="the pod level less what is exclusive"),
        pytest.param("1", {"main"}, False, 0, id="never below zero"),
        pytest.param("5", {"main"}, True, 0, id="a pod with CPUs of its own"),
    ],
)
def test_shared_millicores(
    level: str | None, exclusive: set[str], own: bool, expected: int
) -> None:
    asked = shared_millicores(pod(level), exclusive, GATES, has_own_cpus=own)

    assert asked == expected


def test_without_the_gate_the_pod_level_does_not_count() -> None:
    gates = FeatureGates(pod_level_resources=False)

    assert shared_millicores(pod("5"), set(), gates, has_own_cpus=False) == 3500
