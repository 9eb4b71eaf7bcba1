"""PLEG-2, and the health of PLEG-1."""

from __future__ import annotations

import pytest

from numalign_agent.pleg.changes import LifecycleEvent, events_between
from numalign_agent.pleg.health import problem
from numalign_agent.runners.port import ContainerPhase


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        (None, "running", ["ContainerStarted"]),
        ("created", "running", ["ContainerStarted"]),
        (None, "exited", ["ContainerDied"]),
        ("running", "exited", ["ContainerDied"]),
        ("exited", None, ["ContainerRemoved"]),
        ("running", None, ["ContainerDied", "ContainerRemoved"]),
        ("running", "unknown", ["ContainerChanged"]),
        (None, "created", ["ContainerChanged"]),
        ("running", "running", []),
    ],
)
def test_events(before: str | None, after: str | None, kinds: list[str]) -> None:
    def phases(text: str | None) -> dict[str, ContainerPhase]:
        return {} if text is None else {"c": ContainerPhase(text)}

    events = events_between("u", phases(before), phases(after))

    assert [event.kind.value for event in events] == kinds
    assert {event.container_id for event in events} <= {"c"}


def test_no_change_is_an_event_only_where_somebody_asked() -> None:
    phases = {"c": ContainerPhase.RUNNING}

    assert events_between("u", phases, phases) == ()
    (event,) = events_between("u", phases, phases, asked=True)
    assert (event.kind.value, event.container_id) == ("PodSync", "")


def test_events_come_in_the_order_of_ids() -> None:
    events: tuple[LifecycleEvent, ...] = events_between(
        "u",
        {"b": ContainerPhase.RUNNING},
        {"a": ContainerPhase.RUNNING, "b": ContainerPhase.EXITED},
    )

    assert [event.container_id for event in events] == ["a", "b"]


@pytest.mark.parametrize(
    ("listed_at", "now", "expected"),
    [
        (None, 5.0, "pleg has yet to be successful"),
        (0.0, 180.0, None),
        (0.0, 181.0, "pleg was last seen active 3m1s ago; threshold is 3m0s"),
        (0.0, 3725.0, "pleg was last seen active 1h2m5s ago; threshold is 3m0s"),
    ],
)
def test_health(listed_at: float | None, now: float, expected: str | None) -> None:
    assert problem(listed_at, now) == expected
