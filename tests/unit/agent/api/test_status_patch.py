"""What the API server is told of a pod's status (STAT-3)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.integration.fake_api.store import merged

from numalign_agent.api.status_patch import status_patch

NOW = "2026-01-02T03:04:05Z"
THEN = "2026-01-01T00:00:00Z"


def condition(kind: str, status: str, **more: str) -> dict[str, str]:
    return {"type": kind, "status": status, "lastTransitionTime": THEN, **more}


def told(shown: dict[str, Any], own: dict[str, Any], *, may_run: bool = False) -> Any:
    """The API's status after the patch; a second patch has nothing to say."""
    patch = status_patch(shown, own, may_run=may_run, now=NOW)
    after = merged(shown, patch)
    assert status_patch(after, own, may_run=may_run, now=NOW) == {}
    return after


def test_nothing_to_say() -> None:
    own = {"phase": "Running", "conditions": [condition("Ready", "True")]}

    assert status_patch({**own, "nominatedNodeName": ""}, own, may_run=True, now=NOW) == {}


def test_foreign_conditions_stay_and_own_ones_that_are_gone_go() -> None:
    """Trap 19: a rejected pod has no conditions of ours."""
    shown = {
        "phase": "Pending",
        "conditions": [condition("PodScheduled", "True"), condition("example.com/x", "True")],
    }

    assert told(shown, {"phase": "Failed", "reason": "OutOfcpu", "message": "m"}) == {
        "phase": "Failed",
        "reason": "OutOfcpu",
        "message": "m",
        "conditions": [condition("example.com/x", "True")],
    }


def test_a_condition_is_replaced_whole() -> None:
    shown = {"conditions": [condition("Ready", "False", reason="r", message="m")]}
    own = {"conditions": [condition("Ready", "True")]}

    assert told(shown, own) == own


def test_an_end_is_held_back_while_containers_could_run() -> None:
    shown = {"phase": "Running", "message": "m"}
    own = {"phase": "Failed", "reason": "Evicted", "containerStatuses": [{"name": "c"}]}

    assert told(shown, own, may_run=True) == {
        "phase": "Running",
        "message": "m",
        "containerStatuses": [{"name": "c"}],
    }
    assert told(shown, own) == {
        "phase": "Failed",
        "reason": "Evicted",
        "containerStatuses": [{"name": "c"}],
    }


def test_an_end_that_was_told_already_is_not_taken_back() -> None:
    shown = {"phase": "Failed", "reason": "Evicted"}

    assert told(shown, {"phase": "Failed", "reason": "Evicted"}, may_run=True) == shown


@pytest.mark.parametrize(
    ("phase", "reason"), [("Succeeded", "PodCompleted"), ("Failed", "PodFailed")]
)
def test_no_pod_that_has_ended_is_ready(phase: str, reason: str) -> None:
    own = {
        "phase": phase,
        "conditions": [condition("Ready", "True"), condition("PodScheduled", "True")],
    }

    assert told({}, own)["conditions"] == [
        {"type": "Ready", "status": "False", "reason": reason, "lastTransitionTime": NOW},
        condition("PodScheduled", "True"),
    ]


def test_fields_that_a_server_adds_are_no_difference() -> None:
    state = {"running": {"startedAt": THEN}}
    own = {"containerStatuses": [{"name": "c", "ready": False, "state": state}]}
    shown = {
        "containerStatuses": [
            {"name": "c", "state": state, "lastState": {}, "restartCount": 0, "imageID": ""}
        ]
    }

    assert status_patch(shown, own, may_run=False, now=NOW) == {}
