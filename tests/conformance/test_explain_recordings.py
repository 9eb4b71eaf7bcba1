"""Every recorded merge can be explained, and travels in an explanation as it was recorded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.conformance.scenario_pods import (
    Json,
    gates_from_scenario,
    hint_from_scenario,
    hints_from_scenario,
    load_scenarios,
    machine_from_scenario,
    pod_from_scenario,
    scenario_topics,
    topology_settings_from_scenario,
)

from numalign.provider.hint_messages import hint_from_message, hints_from_message
from numalign.topology.construct import build_policy
from numalign.topology.explain_refusal import merge_obstacle
from numalign.topology.explain_summary import admission
from numalign.topology.messages import merge_to_message
from numalign.topology.ports import ProviderAnswer
from numalign.topology.scope import MergeRecord, ScopeResult
from numalign.v1 import types_pb2 as pb

LONGEST = 700


def admissions(scenario: Json) -> Iterator[Json]:
    """Steps that admit and come to a merge; not those over which the kubelet panics."""
    for step in scenario["steps"]:
        if step["op"] == "admit" and step["hints"] and "panic" not in step["expect"]:
            yield step


def record_of(merge: Json) -> MergeRecord:
    return MergeRecord(
        container=merge["container"],
        answers=tuple(
            ProviderAnswer(p["provider"], hints_from_scenario(p["hints"]))
            for p in merge["providers"]
        ),
        best=hint_from_scenario(merge["best"]),
        admitted=merge["best"]["admit"],
    )


def read_back(message: pb.MergeRecord) -> MergeRecord:
    return MergeRecord(
        container=message.container or None,
        answers=tuple(
            ProviderAnswer(p.provider, hints_from_message(p.hints) if p.HasField("hints") else None)
            for p in message.providers
        ),
        best=hint_from_message(message.best),
        admitted=message.admitted,
    )


@pytest.mark.parametrize("topic", scenario_topics())
def test_recorded_merges_are_explained_and_travel_unchanged(topic: str) -> None:
    for scenario in load_scenarios(topic):
        if "construct_error" in scenario:
            continue
        node = scenario["node"]
        decider = build_policy(
            topology_settings_from_scenario(node),
            machine_from_scenario(node),
            gates_from_scenario(scenario),
        )
        for step in admissions(scenario):
            records = tuple(map(record_of, step["hints"]))
            assert tuple(map(read_back, map(merge_to_message, records))) == records
            assert decider.numa is not None
            if records[-1].admitted:
                result = ScopeResult(admitted=True, merges=records)
                told = admission(result, decider.policy, decider.numa, decider.scope.name)
                assert len(told.summary) <= LONGEST
                continue
            pod = pod_from_scenario(step["pod"])
            obstacle = merge_obstacle(records[-1], decider.policy, decider.numa, pod, ())
            assert obstacle.resources
            assert f"policy {decider.policy.name} refuses it" in obstacle.why
