"""Every recorded scenario, seen from the memory manager."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from tests.conformance.memory_scenarios import Tally, replay
from tests.conformance.scenario_pods import Json, load_scenarios, scenario_topics

from numalign.memory.engine import KUBELET, SAFE

BOOKED_TWICE = {"random-pod-level-0067"}
"""Re-admission after a restart books a pod as a whole a second time (MEM-T5)."""


def _refused_at_restart(scenario: Json) -> bool:
    return any(
        step.get("start_error_stage") == "memory_manager_start"
        for step in scenario.get("steps", ())
    )


@pytest.mark.parametrize("topic", scenario_topics())
def test_the_kubelets_answers(topic: str) -> None:
    wrong = [line for s in load_scenarios(topic) for line in replay(s, KUBELET).wrong]

    assert wrong == []


@pytest.mark.parametrize("topic", scenario_topics())
def test_the_safe_strategies_change_nothing_where_the_kubelet_starts(topic: str) -> None:
    scenarios = [
        s
        for s in load_scenarios(topic)
        if not _refused_at_restart(s) and s["name"] not in BOOKED_TWICE
    ]
    wrong = [line for scenario in scenarios for line in replay(scenario, SAFE).wrong]

    assert scenarios
    assert wrong == []


def test_the_safe_strategies_give_back_what_was_booked_twice() -> None:
    wrong = [replay(s, SAFE).wrong for s in load_scenarios() if s["name"] in BOOKED_TWICE]

    assert [len(lines) for lines in wrong] == [1]
    assert "books" in wrong[0][0]


def test_the_safe_start_starts_where_the_kubelet_refuses() -> None:
    scenarios = [s for s in load_scenarios() if _refused_at_restart(s)]
    wrong = [replay(scenario, SAFE).wrong for scenario in scenarios]

    assert len(wrong) == 4
    assert all("memory started: True != False" in lines[0] for lines in wrong), wrong


def test_everything_recorded_was_compared() -> None:
    tallies = [asdict(replay(scenario, KUBELET).tally) for scenario in load_scenarios("memory")]
    total = {name: sum(tally[name] for tally in tallies) for name in asdict(Tally())}

    assert total["steps"] == 281
    assert min(total[name] for name in ("hints", "allocations", "books", "blocks")) > 100
