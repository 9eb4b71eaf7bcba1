"""Which containers may swap."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.admission.handlers.admit_pods import CRITICAL, pod

from numalign.admission.handlers.swap import SwapBehavior, swap_behavior
from numalign.model.feature_gates import FeatureGates

_MORE = {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}
_SAME = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
_GUARANTEED = {
    "requests": {"cpu": "1", "memory": "1Gi"},
    "limits": {"cpu": "1", "memory": "1Gi"},
}


@pytest.mark.parametrize(
    ("configured", "can_limit", "given", "expected"),
    [
        pytest.param(SwapBehavior.LIMITED, True, _MORE, "LimitedSwap", id="burstable"),
        pytest.param(SwapBehavior.LIMITED, False, _MORE, "NoSwap", id="host-cannot-limit"),
        pytest.param(SwapBehavior.NONE, True, _MORE, "NoSwap", id="not-configured"),
        pytest.param(SwapBehavior.LIMITED, True, _SAME, "NoSwap", id="request-is-the-limit"),
        pytest.param(
            SwapBehavior.LIMITED, True, {"requests": {"cpu": "1"}}, "NoSwap", id="no-memory"
        ),
        pytest.param(SwapBehavior.LIMITED, True, {}, "NoSwap", id="best-effort"),
        pytest.param(SwapBehavior.LIMITED, True, _GUARANTEED, "NoSwap", id="guaranteed"),
        pytest.param(
            SwapBehavior.LIMITED, True, _MORE | {"priority": CRITICAL}, "NoSwap", id="critical"
        ),
    ],
)
def test_who_swaps(
    configured: SwapBehavior, can_limit: bool, given: dict[str, Any], expected: str
) -> None:
    """RSZ-3: only what the kubelet lets swap bars a resize of memory."""
    asked = pod(**given)
    behavior = swap_behavior(configured, can_limit, FeatureGates())

    assert behavior(asked, asked.pod.containers[0]) == expected
