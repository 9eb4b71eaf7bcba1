"""The device engine gives what the kubelet's device manager gave, in every recorded scenario."""

from __future__ import annotations

import pytest
from tests.conformance.device_scenarios import ONE_ORDER_SEEN, replay
from tests.conformance.scenario_pods import load_scenarios, scenario_topics


@pytest.mark.parametrize("topic", scenario_topics())
def test_every_scenario_of_a_topic_agrees(topic: str) -> None:
    replayed = {s["name"]: replay(s) for s in load_scenarios(topic) if "construct_error" not in s}

    found = [f"{name}{line}" for name, outcome in replayed.items() for line in outcome.found]
    assert found == []
    steps = sum(outcome.steps for outcome in replayed.values())
    assert sum(outcome.compared for outcome in replayed.values()) >= steps


@pytest.mark.parametrize("name", sorted(ONE_ORDER_SEEN))
def test_an_incomplete_recording_is_still_needed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = ONE_ORDER_SEEN[name]
    monkeypatch.delitem(ONE_ORDER_SEEN, name)
    (scenario,) = (s for s in load_scenarios() if s["name"] == name)

    found = replay(scenario).found

    assert {line.partition(":")[0] for line in found} == set(paths)
