"""Which pods memory is placed for, and what they ask for."""

from __future__ import annotations

import pytest
from tests.unit.memory.memory_builders import (
    GATES,
    GI,
    MANAGED_GATES,
    MI,
    container,
    pod,
    quantities,
)

from numalign.memory.eligibility import (
    PodLevel,
    container_request,
    has_exclusive_memory,
    pod_level,
    pod_request,
)
from numalign.model.feature_gates import FeatureGates
from numalign.model.pod import Container, Pod, Resources

LEVEL = {"cpu": "4", "memory": "8Gi"}


@pytest.mark.parametrize(
    ("level", "gates", "expected"),
    [
        pytest.param(None, MANAGED_GATES, PodLevel.ABSENT, id="no-section"),
        pytest.param({"ephemeral-storage": "1"}, GATES, PodLevel.ABSENT, id="other-resource"),
        pytest.param(LEVEL, GATES, PodLevel.BARRED, id="managers-off"),
        pytest.param(LEVEL, MANAGED_GATES, PodLevel.MANAGED, id="managers-on"),
        pytest.param(
            LEVEL,
            FeatureGates(pod_level_resources=False, pod_level_resource_managers=True),
            PodLevel.BARRED,
            id="resources-off",
        ),
    ],
)
def test_pod_level(level: dict[str, str] | None, gates: FeatureGates, expected: PodLevel) -> None:
    assert pod_level(pod("p", container("a", "1Gi"), level=level), gates) is expected


def test_container_request_keeps_zeros_and_drops_other_resources() -> None:
    one = container("a", "1Gi", hugepages_2Mi="0", ephemeral_storage="1Gi")

    assert container_request(pod("p", one), one, GATES) == {"hugepages-2Mi": 0, "memory": GI}


@pytest.mark.parametrize("text", ["1500m", "1.5Gi", "100Pi"])
def test_a_value_that_is_no_plain_integer_is_an_error(text: str) -> None:
    one = container("a", text)
    whole = pod("p", one)

    assert container_request(whole, one, GATES) is None
    assert pod_request(whole, GATES) is None


@pytest.mark.parametrize(
    ("requests", "limits", "expected"),
    [
        pytest.param({"cpu": "1", "memory": "1"}, {"cpu": "1", "memory": "1"}, True, id="equal"),
        pytest.param(
            {"cpu": "1500m", "memory": "1"}, {"cpu": "1.5", "memory": "1"}, True, id="part"
        ),
        pytest.param({"cpu": "1", "memory": "1"}, {"cpu": "2", "memory": "1"}, False, id="cpu"),
        pytest.param({"cpu": "1", "memory": "1"}, {"cpu": "1", "memory": "2"}, False, id="memory"),
        pytest.param({"cpu": "0", "memory": "1"}, {"cpu": "0", "memory": "1"}, False, id="zero"),
        pytest.param({}, {}, False, id="none"),
    ],
)
def test_exclusive_memory(requests: dict[str, str], limits: dict[str, str], expected: bool) -> None:
    resources = Resources(requests=quantities(requests), limits=quantities(limits))

    assert has_exclusive_memory(Container(name="a", resources=resources)) is expected


def test_only_exclusive_containers_of_a_managed_pod_ask_for_anything() -> None:
    shared = Container(name="s", resources=Resources(requests=quantities({"memory": "1Gi"})))
    own = container("a", "2Gi")
    managed = pod("p", shared, own, level=LEVEL)

    assert container_request(managed, shared, MANAGED_GATES) == {}
    assert container_request(managed, own, MANAGED_GATES) == {"memory": 2 * GI}


def test_a_managed_pod_asks_for_its_section_without_zeros() -> None:
    managed = pod("p", container("a", "2Gi"), level={**LEVEL, "hugepages-2Mi": "0"})

    assert pod_request(managed, MANAGED_GATES) == {"memory": 8 * GI}


@pytest.mark.parametrize(
    ("whole", "expected"),
    [
        pytest.param(
            pod("p", container("a", "1Gi"), container("b", "2Gi")),
            {"memory": 3 * GI},
            id="app-containers-add-up",
        ),
        pytest.param(
            pod("p", container("i", "5Gi", init=True), container("a", "1Gi")),
            {"memory": 5 * GI},
            id="a-large-init-container-decides",
        ),
        pytest.param(
            pod(
                "p",
                container("i", "3Gi", init=True),
                container("s", "2Gi", sidecar=True),
                container("j", "3Gi", init=True),
                container("a", "1Gi"),
            ),
            {"memory": 5 * GI},
            id="only-sidecars-before-an-init-container-run-beside-it",
        ),
        pytest.param(
            pod("p", container("s", "2Gi", sidecar=True), container("a", "1Gi")),
            {"memory": 3 * GI},
            id="sidecars-run-beside-app-containers",
        ),
        pytest.param(
            pod("p", container("i", "1Gi", init=True, hugepages_2Mi="4Mi"), container("a", "2Gi")),
            {"memory": 2 * GI},
            id="huge-pages-of-init-containers-are-invisible-T15",
        ),
        pytest.param(
            pod(
                "p",
                container("i", "1Gi", init=True, hugepages_2Mi="4Mi"),
                container("a", "2Gi", hugepages_2Mi="2Mi"),
            ),
            {"hugepages-2Mi": 4 * MI, "memory": 2 * GI},
            id="unless-an-app-container-has-some",
        ),
    ],
)
def test_request_of_a_pod(whole: Pod, expected: dict[str, int]) -> None:
    assert pod_request(whole, GATES) == expected
