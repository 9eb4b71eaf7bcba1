"""WRK-14."""

from __future__ import annotations

import pytest

from numalign_agent.workers.requeue import Ending, Outcome, next_look


@pytest.mark.parametrize(
    ("outcome", "least", "most"),
    [
        pytest.param(Outcome(Ending.MOVED_ON), 0, 0, id="moved to another state"),
        pytest.param(Outcome(Ending.DONE), 60, 90, id="success, trap 28"),
        pytest.param(
            Outcome(Ending.FAILED, "network is not ready: no"), 1, 1.5, id="network not ready"
        ),
        pytest.param(Outcome(Ending.FAILED, "oh"), 10, 15, id="other error"),
        pytest.param(Outcome(Ending.FAILED, "oh", 4), 4, 6, id="a back-off expiry"),
        pytest.param(Outcome(Ending.FAILED, "oh", 500), 60, 90, id="clamped"),
        pytest.param(Outcome(Ending.FAILED, "oh", -3), 0, 0, id="long over"),
    ],
)
def test_next_look(outcome: Outcome, least: float, most: float) -> None:
    assert next_look(outcome, 60.0, 0.0) == least
    assert next_look(outcome, 60.0, 1.0) == most
