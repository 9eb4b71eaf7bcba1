"""The pauses before a container that keeps ending is started again."""

from __future__ import annotations

import pytest

from numalign_agent.containers.crash_pause import (
    CrashPause,
    lengthened,
    pause_message,
    remaining,
)


def test_pauses_double_up_to_five_minutes() -> None:
    pause, now, seen = None, 1000.0, []
    for _ in range(8):
        now += 1.0  # it ran for a second, and then for as long as it was left alone
        seen.append(remaining(pause, now, now))
        now += seen[-1]
        pause = lengthened(pause, now, now)

    assert seen == [0.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]


@pytest.mark.parametrize(
    ("finished_at", "now", "left"),
    [
        pytest.param(100.0, 104.0, 16.0, id="counted from the end"),
        pytest.param(100.0, 120.0, 0.0, id="over"),
        pytest.param(100.0, 500.0, 0.0, id="long over"),
        pytest.param(701.0, 701.0, 0.0, id="it ran for ten minutes: all is forgotten"),
    ],
)
def test_remaining(finished_at: float, now: float, left: float) -> None:
    assert remaining(CrashPause(20.0, 100.0), finished_at, now) == left


def test_a_long_run_begins_anew() -> None:
    assert lengthened(CrashPause(300.0, 100.0), 701.0, 701.0) == CrashPause(10.0, 701.0)


@pytest.mark.parametrize(("seconds", "text"), [(10, "10s"), (80, "1m20s"), (300, "5m0s")])
def test_the_message(seconds: float, text: str) -> None:
    assert pause_message(seconds, "c", "web", "default", "u1") == (
        f"back-off {text} restarting failed container=c pod=web_default(u1)"
    )
