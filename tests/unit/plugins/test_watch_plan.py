"""What the plugin watcher does next."""

from __future__ import annotations

from pathlib import Path

import pytest

from numalign.plugins.watch_plan import Identity, Plan, Wait, longer, plan

A, B = Path("/pr/a.sock"), Path("/pr/b.sock")


@pytest.mark.parametrize(
    ("there", "registered", "waits", "expected"),
    [
        pytest.param({}, {}, {}, Plan(), id="nothing"),
        pytest.param({B: (2, 0), A: (1, 0)}, {}, {}, Plan(register=(A, B)), id="new"),
        pytest.param({A: (1, 0)}, {A: (1, 0)}, {}, Plan(), id="known"),
        pytest.param({}, {A: (1, 0)}, {}, Plan(unregister=(A,)), id="gone"),
        pytest.param({A: (1, 5)}, {A: (1, 0)}, {}, Plan(unregister=(A,)), id="made-anew"),
        pytest.param({A: (1, 0)}, {}, {A: Wait(10.5, 1.0)}, Plan(), id="waits"),
        pytest.param({A: (1, 0)}, {}, {A: Wait(10.0, 1.0)}, Plan(register=(A,)), id="has-waited"),
    ],
)
def test_plan(
    there: dict[Path, Identity],
    registered: dict[Path, Identity],
    waits: dict[Path, Wait],
    expected: Plan,
) -> None:
    assert plan(there, registered, waits, now=10.0) == expected


def test_one_thing_a_path_at_a_time() -> None:
    due = Plan(unregister=(A,), register=(B,))

    assert due.without({A: None}) == Plan(register=(B,))
    assert due.without({B: None}) == Plan(unregister=(A,))


def test_waits_double_up_to_two_minutes_and_two_seconds() -> None:
    wait = None
    seconds = []
    for _ in range(10):
        wait = longer(wait, now=0.0)
        seconds.append(wait.seconds)

    assert seconds == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 122.0, 122.0]
    assert wait is not None
    assert wait.until == 122.0
