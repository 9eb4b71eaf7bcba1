"""What a pod was admitted with, and resizes that can never be granted."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.admission.handlers.admit_pods import pod

from numalign.admission.handlers.allocation import ResizeGates, allocation_of, overlaid
from numalign.admission.handlers.resize_feasibility import ResizeFacts, decide_resize
from numalign.model.feature_gates import FeatureGates

_GATES = ResizeGates()


def _facts(cpu: str = "none", memory: str = "None", swap: str = "NoSwap") -> ResizeFacts:
    return ResizeFacts(
        cpu_manager_policy=cpu, memory_manager_policy=memory, swap_behavior=lambda _, __: swap
    )


def test_an_equal_entry_changes_nothing() -> None:
    """ALLOC-6, trap 34: quantities compare by value, and the answer is whether they differ."""
    shown, changed = overlaid(
        pod(requests={"cpu": "1"}), allocation_of(pod(requests={"cpu": "1000m"}), _GATES), _GATES
    )

    assert not changed
    assert shown == pod(requests={"cpu": "1"})


def test_the_pod_is_shown_as_it_was_admitted() -> None:
    """ALLOC-6, trap 23."""
    shown, changed = overlaid(
        pod(requests={"cpu": "4"}), allocation_of(pod(requests={"cpu": "1"}), _GATES), _GATES
    )

    assert changed
    assert shown.pod == pod(requests={"cpu": "1"}).pod


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        pytest.param({}, {"resources": {}}, True, id="empty-is-not-absent"),
        pytest.param({"resources": {}}, {"resources": {"requests": {}}}, False, id="empty-maps"),
        pytest.param({"resources": {"requests": {"cpu": "1"}}}, {}, True, id="added"),
    ],
)
def test_pod_level_sections(before: dict[str, Any], after: dict[str, Any], changed: bool) -> None:
    """ALLOC-6."""
    shown, differs = overlaid(pod(**after), allocation_of(pod(**before), _GATES), _GATES)

    assert differs is changed
    assert shown.pod_level == pod(**before).pod_level


def test_init_containers_have_their_own_gate() -> None:
    """ALLOC-5."""
    init: dict[str, Any] = {
        "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]
    }
    off = ResizeGates(init_containers=False)

    assert list(allocation_of(pod(**init), _GATES).containers) == ["i", "s", "c"]
    assert list(allocation_of(pod(**init), off).containers) == ["s", "c"]


_STATIC_CPU = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'
_STATIC_MEMORY = 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"'
_SWAP = "In-place resize of containers with swap is not supported."


def _both(cpu: str, memory: str) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": memory}
    return {"requests": amounts, "limits": amounts}


@pytest.mark.parametrize(
    ("before", "after", "facts", "message"),
    [
        pytest.param(_both("1", "1Gi"), _both("2", "1Gi"), _facts(), "", id="no-policy"),
        pytest.param(
            _both("1", "1Gi"), _both("2", "1Gi"), _facts(cpu="static"), _STATIC_CPU, id="cpu"
        ),
        pytest.param(
            _both("1", "1Gi"), _both("1", "2Gi"), _facts(cpu="static"), "", id="other-resource"
        ),
        pytest.param(
            _both("1", "1Gi"),
            _both("1", "2Gi"),
            _facts(memory="Static"),
            _STATIC_MEMORY,
            id="memory",
        ),
        pytest.param(
            _both("1", "1Gi"), _both("1", "2Gi"), _facts(memory="static"), "", id="lower-case"
        ),
        pytest.param(
            {"requests": {"cpu": "1"}},
            {"requests": {"cpu": "2"}},
            _facts(cpu="static"),
            "",
            id="burstable",
        ),
        pytest.param(
            _both("1", "1Gi"), _both("1", "2Gi"), _facts(swap="LimitedSwap"), _SWAP, id="swap"
        ),
        pytest.param(
            _both("1", "1Gi"),
            _both("1", "2Gi")
            | {
                "container": {
                    "resources": _both("1", "2Gi"),
                    "resizePolicy": [
                        {"resourceName": "memory", "restartPolicy": "RestartContainer"}
                    ],
                }
            },
            _facts(swap="LimitedSwap"),
            "",
            id="swap-with-restart",
        ),
    ],
)
def test_feasibility(
    before: dict[str, Any], after: dict[str, Any], facts: ResizeFacts, message: str
) -> None:
    """RSZ-3, RSZ-5."""
    allocation = allocation_of(pod(**before), _GATES)
    verdict = decide_resize(pod(**after), allocation, facts, _GATES, FeatureGates())

    assert verdict.message == message
    assert verdict.reason == ("Infeasible" if message else "")


def test_feasibility_needs_the_feature() -> None:
    """RSZ-2."""
    verdict = decide_resize(pod(), None, _facts(), ResizeGates(in_place=False), FeatureGates())

    assert verdict.message == "InPlacePodVerticalScaling is disabled"


def test_without_an_entry_a_guaranteed_pod_was_given_nothing() -> None:
    """RSZ-5."""
    verdict = decide_resize(
        pod(**_both("1", "1Gi")), None, _facts(cpu="static"), _GATES, FeatureGates()
    )

    assert verdict.message == _STATIC_CPU
