"""The pure rules of the loop: LOOP-7 to LOOP-10, MERGE-6."""

from __future__ import annotations

import pytest

from numalign_agent.loop.monitor import Monitor
from numalign_agent.loop.pause import Pause
from numalign_agent.loop.runtime_health import RuntimeHealth
from numalign_agent.loop.sources_ready import SourcesReady


def test_pauses() -> None:
    """LOOP-8."""
    pause, seconds = Pause(), []
    for _ in range(8):
        seconds.append(pause.seconds)
        pause = pause.longer()

    assert seconds == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


@pytest.mark.parametrize(
    ("every", "seen_at", "now", "healthy"),
    [
        pytest.param(60.0, None, 9999.0, True, id="trap 23: never seen"),
        pytest.param(60.0, 0.0, 300.0, True, id="five minutes at least"),
        pytest.param(60.0, 0.0, 301.0, False, id="too long"),
        pytest.param(200.0, 0.0, 400.0, True, id="twice the sync frequency"),
        pytest.param(200.0, 0.0, 401.0, False, id="and not more"),
    ],
)
def test_monitor(every: float, seen_at: float | None, now: float, healthy: bool) -> None:
    problem = Monitor(every, seen_at).problem(now)

    assert problem == (None if healthy else "sync Loop took longer than expected")


@pytest.mark.parametrize(
    ("health", "pleg", "errors"),
    [
        pytest.param(
            RuntimeHealth(),
            None,
            ("container runtime status check may not have completed yet",),
            id="never checked",
        ),
        pytest.param(RuntimeHealth().answered(100.0, None), None, (), id="well"),
        pytest.param(
            RuntimeHealth().answered(69.0, None), None, ("container runtime is down",), id="down"
        ),
        pytest.param(
            RuntimeHealth().answered(100.0, "no disk"),
            "no listing",
            ("PLEG is not healthy: no listing", "no disk"),
            id="all that is wrong",
        ),
        pytest.param(
            RuntimeHealth().answered(90.0, "no disk").silent(), None, (), id="silent for a while"
        ),
    ],
)
def test_runtime_errors(health: RuntimeHealth, pleg: str | None, errors: tuple[str, ...]) -> None:
    """LOOP-7."""
    assert health.errors(100.0, pleg) == errors


def test_sources_are_ready_when_they_are_delivered_and_seen() -> None:
    delivered: set[str] = set()
    ready = SourcesReady(["file", "api"], lambda: delivered)

    assert not ready()
    ready.seen("file")
    delivered.add("file")
    delivered.add("api")
    assert ready.missing() == ("api",)
    ready.seen("api")
    assert ready()
    assert SourcesReady([], lambda: ())()
