"""Which pods end when at a shutdown, how long they have, and who is to run again (SHUT-4)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.agent.made import pod

from numalign.admission.handlers.node_shutdown import GraceGroup
from numalign_agent.journal.rows import PodRow
from numalign_agent.pod import AgentPod
from numalign_agent.shutdown.plan import MESSAGE, REASON, coming_back, endings, kill_of

GROUPS = (GraceGroup(0, 20.0), GraceGroup(2_000_000_000, 10.0))


def of_priority(name: str, priority: int | None, **spec: Any) -> AgentPod:
    return pod(name, **spec) if priority is None else pod(name, priority=priority, **spec)


def test_the_least_important_end_first() -> None:
    pods = [
        of_priority("system", 2_000_001_000),
        of_priority("plain", None),
        of_priority("below", -5),
        of_priority("above", 7),
    ]

    assert [(e.seconds, [p.name for p in e.pods]) for e in endings(pods, GROUPS)] == [
        (20.0, ["plain", "below", "above"]),
        (10.0, ["system"]),
    ]


def test_a_group_without_pods_takes_no_time() -> None:
    assert [e.seconds for e in endings([of_priority("system", 2_000_000_000)], GROUPS)] == [10.0]
    assert endings([], GROUPS) == ()


@pytest.mark.parametrize(
    ("own", "grace"),
    [
        pytest.param(None, 20, id="the groups"),
        pytest.param(5, 5, id="its own"),
        pytest.param(300, 20, id="its own is longer"),
    ],
)
def test_how_long_a_pod_has(own: int | None, grace: int) -> None:
    spec: dict[str, Any] = {} if own is None else {"terminationGracePeriodSeconds": own}
    kill = kill_of(pod("p", **spec), 20.0)

    assert kill.grace == grace
    assert kill.ended_by is not None
    assert (kill.ended_by.phase, kill.ended_by.reason) == ("Failed", "Terminated")
    assert kill.ended_by.condition is not None
    assert kill.ended_by.condition["reason"] == "TerminationByKubelet"


ENDED = {"phase": "Failed", "reason": REASON, "message": MESSAGE}


@pytest.mark.parametrize(
    ("row", "comes_back"),
    [
        pytest.param({"source": "file", "status": ENDED}, True, id="ended by a shutdown"),
        pytest.param({"source": "api", "status": ENDED}, False, id="the API server says so too"),
        pytest.param(
            {"source": "http", "verdict": "rejected", "reason": "NodeShutdown"},
            True,
            id="refused during one",
        ),
        pytest.param(
            {"source": "file", "verdict": "rejected", "reason": "OutOfcpu"},
            False,
            id="refused for something else",
        ),
        pytest.param(
            {"source": "file", "status": {"phase": "Failed", "reason": "Evicted"}},
            False,
            id="ended for something else",
        ),
        pytest.param({"source": "file", "status": {"phase": "Running"}}, False, id="runs"),
    ],
)
def test_who_is_judged_anew_at_the_next_start(row: dict[str, Any], comes_back: bool) -> None:
    rows = {"u": PodRow(uid="u", namespace="default", name="p", **row)}

    assert coming_back(rows) == (("u",) if comes_back else ())
