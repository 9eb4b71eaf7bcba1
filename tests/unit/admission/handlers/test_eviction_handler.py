"""Which pods a node under pressure still takes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.admission.handlers.admit_pods import CRITICAL, STATIC, pod

from numalign.admission.handlers.eviction import decide_eviction
from numalign.model.feature_gates import FeatureGates

_MEMORY, _DISK, _PID = "MemoryPressure", "DiskPressure", "PIDPressure"


def _tolerating(name: str) -> dict[str, Any]:
    return {"tolerations": [{"key": f"node.kubernetes.io/{name}", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("conditions", "given", "message"),
    [
        pytest.param((), {}, "", id="no-pressure"),
        pytest.param(
            (_MEMORY,), {}, "The node had condition: [MemoryPressure]. ", id="trap-2-best-effort"
        ),
        pytest.param((_MEMORY,), {"requests": {"cpu": "1"}}, "", id="burstable"),
        pytest.param((_MEMORY,), _tolerating("memory-pressure"), "", id="tolerated"),
        pytest.param(
            (_DISK,),
            _tolerating("disk-pressure"),
            "The node had condition: [DiskPressure]. ",
            id="trap-4-toleration-does-not-help",
        ),
        pytest.param(
            (_MEMORY, _PID),
            {"requests": {"cpu": "1"}},
            "The node had condition: [MemoryPressure PIDPressure]. ",
            id="trap-3-two-conditions",
        ),
        pytest.param((_DISK, _PID), {"metadata": STATIC}, "", id="static-is-critical"),
        pytest.param((_DISK,), {"priority": CRITICAL}, "", id="critical"),
        pytest.param(
            (_DISK,),
            {"priority": CRITICAL - 1},
            "The node had condition: [DiskPressure]. ",
            id="not-quite-critical",
        ),
        pytest.param(
            (_DISK,),
            {"metadata": {"annotations": {"kubernetes.io/config.mirror": ""}}},
            "",
            id="mirror-is-critical",
        ),
        pytest.param(
            (_PID,),
            {"metadata": {"annotations": {"kubernetes.io/config.source": "api"}}},
            "The node had condition: [PIDPressure]. ",
            id="api-pod-is-not-static",
        ),
    ],
)
def test_verdict(conditions: tuple[str, ...], given: dict[str, Any], message: str) -> None:
    """EVI-1 to EVI-6."""
    verdict = decide_eviction(pod(**given), conditions, FeatureGates())

    assert (verdict.admit, verdict.message) == (not message, message)
    assert verdict.reason == ("Evicted" if message else "")
