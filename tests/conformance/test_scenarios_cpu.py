"""Every recorded scenario, replayed against the CPU engine alone."""

from __future__ import annotations

import pytest
from tests.conformance.cpu_scenarios import differences
from tests.conformance.scenario_pods import load_scenarios, scenario_topics


def test_scenarios_are_all_there() -> None:
    assert len(load_scenarios()) == 1304


@pytest.mark.parametrize("topic", scenario_topics())
def test_cpu_part_agrees(topic: str) -> None:
    wrong = {s["name"]: found for s in load_scenarios(topic) if (found := differences(s))}

    assert wrong == {}
