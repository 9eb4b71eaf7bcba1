"""Why a safe node may decide otherwise on a pod: each cause looks at the values."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.device.awaiting import REASON
from numalign.replay.causes import NODES_UNKNOWN, NOT_YET, admission_cause
from numalign.replay.compare import Cause

GPU, NIC = "example.com/gpu", "example.com/nic"
WAITS = f"the device plugin of {GPU} has not reported since the device provider started"


def admission(hints: Any, admitted: bool = False, reason: str = "", message: str = "") -> Any:
    merge = {"providers": [{"provider": "cpu", "hints": None}]}
    if hints is not None:
        merge["providers"].insert(0, {"provider": "device", "hints": hints})
    return {
        "hints": [merge],
        "expect": {"admitted": admitted, "reason": reason, "message": message},
    }


REFUSED = admission({GPU: None}, reason="UnexpectedAdmissionError")
WAITING = admission(None, reason=REASON, message=WAITS)


@pytest.mark.parametrize(
    ("recorded", "replayed", "misplaced", "cause"),
    [
        pytest.param(REFUSED, WAITING, {GPU}, NOT_YET, id="plugin-not-back"),
        pytest.param(admission({GPU: None}, admitted=True), WAITING, {}, None, id="admitted-there"),
        pytest.param(admission({GPU: []}), WAITING, {}, None, id="plugin-had-listed-there"),
        pytest.param(admission({NIC: None}), WAITING, {}, None, id="other-resource-waited-for"),
        pytest.param(REFUSED, REFUSED, {GPU}, None, id="refused-here-too"),
        pytest.param(
            admission({GPU: []}),
            admission({GPU: None}, admitted=True),
            {GPU},
            NODES_UNKNOWN,
            id="nodes-unknown",
        ),
        pytest.param(
            admission({GPU: []}),
            admission({GPU: None}, admitted=True),
            {NIC},
            None,
            id="nodes-known",
        ),
        pytest.param(
            admission({GPU: []}), admission(None), {GPU}, None, id="not-asked-for-hints-here"
        ),
    ],
)
def test_cause_of_another_decision(
    recorded: Any, replayed: Any, misplaced: set[str], cause: Cause | None
) -> None:
    assert admission_cause(recorded, replayed, misplaced) == cause
