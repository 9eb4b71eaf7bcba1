"""The recorded scenarios, as far as the Topology Manager alone decides them.

Providers replay what the recorded ones answered; every merge, every call and its order, and
every admission result must be the recorded one. Construction is checked on every node.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from numalign.errors import StartError
from numalign.model.feature_gates import FeatureGates
from numalign.model.hint import NO_HINT, ProviderHints, TopologyHint
from numalign.model.ids import PodUid
from numalign.model.machine import Machine, NumaNode
from numalign.model.numa_mask import mask_of, nodes_of
from numalign.model.pod import Container, Pod, Resources
from numalign.model.quantity import Quantity
from numalign.model.settings import TopologySettings
from numalign.provider.values import AllocationFailure, ResourceFacts
from numalign.topology.construct import TopologyDecider, build_policy
from numalign.topology.ports import ProviderAnswer

SCENARIOS = Path(__file__).parent / "recordings" / "scenarios"
FILES = sorted(path.name for path in SCENARIOS.glob("*.jsonl.gz"))
TYPED = {"SMTAlignmentError", "EmptyPodSharedPoolError"}


def scenarios(file: str) -> Iterator[dict[str, Any]]:
    with gzip.open(SCENARIOS / file, "rt") as lines:
        yield from map(json.loads, lines)


def decider(node: dict[str, Any], gates: dict[str, bool]) -> TopologyDecider:
    section = node["topology_manager"]
    return build_policy(
        TopologySettings(
            policy=section["policy"],
            scope=section["scope"],
            policy_options=section["policy_options"],
        ),
        Machine(
            numa_nodes=tuple(
                NumaNode(
                    id=given["id"],
                    distances=None if given["distances"] is None else tuple(given["distances"]),
                )
                for given in node["machine"]["numa_nodes"]
            )
        ),
        FeatureGates(
            topology_manager_policy_alpha_options=gates["TopologyManagerPolicyAlphaOptions"],
            topology_manager_policy_beta_options=gates["TopologyManagerPolicyBetaOptions"],
            pod_level_resources=gates["PodLevelResources"],
            pod_level_resource_managers=gates["PodLevelResourceManagers"],
        ),
    )


def pod_of(given: dict[str, Any]) -> Pod:
    spec = given["spec"]
    section = spec.get("resources")
    return Pod(
        uid=PodUid(given["metadata"]["uid"]),
        init_containers=tuple(
            Container(name=c["name"], is_init=True) for c in spec.get("initContainers") or ()
        ),
        containers=tuple(Container(name=c["name"]) for c in spec["containers"]),
        resources=None
        if section is None
        else Resources(
            requests={k: Quantity.parse(v) for k, v in (section.get("requests") or {}).items()},
            limits={k: Quantity.parse(v) for k, v in (section.get("limits") or {}).items()},
        ),
    )


def hint_of(given: dict[str, Any]) -> TopologyHint:
    nodes = given["nodes"]
    return TopologyHint(None if nodes is None else mask_of(nodes), given["preferred"])


def answer_of(given: dict[str, Any]) -> ProviderAnswer:
    hints = given["hints"]
    parsed: ProviderHints = None
    if hints is not None:
        parsed = {
            resource: None if listed is None else tuple(map(hint_of, listed))
            for resource, listed in hints.items()
        }
    return ProviderAnswer(given["provider"], parsed)


def words_of(hint: TopologyHint) -> dict[str, Any]:
    nodes = None if hint.mask is None else list(nodes_of(hint.mask))
    return {"nodes": nodes, "preferred": hint.preferred}


@dataclass
class Replay:
    """Providers that answer as recorded, and notice a call out of order."""

    record: dict[str, Any]
    asked: int = 0
    allocated: int = 0

    async def topology_hints(self, pod: Pod, container: Container) -> tuple[ProviderAnswer, ...]:
        assert pod.container(container.name) is container
        return self._hints(container.name)

    async def pod_topology_hints(self, pod: Pod) -> tuple[ProviderAnswer, ...]:
        assert pod.uid == self.record["expect_uid"]
        return self._hints(None)

    async def amounts(self, pod: Pod, container: Container | None) -> tuple[ResourceFacts, ...]:
        raise AssertionError(f"a kubelet looks at no amounts: {pod}, {container}")

    async def allocate(
        self, pod: Pod, container: Container, affinity: TopologyHint, last: bool
    ) -> AllocationFailure | None:
        assert last is (pod.all_containers()[-1] is container)
        self._check_affinity(affinity)
        return self._allocate(container.name)

    async def allocate_pod(
        self, pod: Pod, affinity: TopologyHint, last: bool
    ) -> AllocationFailure | None:
        assert last
        assert pod.uid == self.record["expect_uid"]
        self._check_affinity(affinity)
        return self._allocate(None)

    def _check_affinity(self, affinity: TopologyHint) -> None:
        """It is the hint merged last, or none where nothing is merged."""
        hints = self.record["hints"]
        assert affinity == (hint_of(hints[self.asked - 1]["best"]) if hints else NO_HINT)

    def _hints(self, container: str | None) -> tuple[ProviderAnswer, ...]:
        recorded = self.record["hints"][self.asked]
        self.asked += 1
        assert recorded["container"] == container
        return tuple(map(answer_of, recorded["providers"]))

    def _allocate(self, container: str | None) -> AllocationFailure | None:
        calls = list(
            takewhile(
                lambda call: call["container"] == container,
                self.record["allocate_calls"][self.allocated :],
            )
        )
        assert [call["provider"] for call in calls] == ["device", "cpu", "memory"][: len(calls)]
        assert calls
        self.allocated += len(calls)
        error = calls[-1]["error"]
        if error is None:
            assert len(calls) == 3
            return None
        reason = self.record["expect"]["reason"]
        return AllocationFailure(error, reason if reason in TYPED else None)


Stored = dict[tuple[PodUid, str], TopologyHint]


async def check_admission(
    built: TopologyDecider, pod: Pod, record: dict[str, Any], stored: Stored, where: str
) -> None:
    replay = Replay({**record, "expect_uid": pod.uid})
    expected = record["expect"]

    result = await built.scope.admit(pod, replay)

    assert replay.asked == len(record["hints"]), where
    assert replay.allocated == len(record["allocate_calls"]), where
    if "panic" in expected:
        assert result.keeps_nothing, where
        assert result.reason == "UnexpectedAdmissionError", where
        return
    assert not result.keeps_nothing, where
    merges = [
        {"container": m.container, "best": {**words_of(m.best), "admit": m.admitted}}
        for m in result.merges
    ]
    assert merges == [{"container": h["container"], "best": h["best"]} for h in record["hints"]], (
        where
    )
    assert (result.admitted, result.reason, result.message) == (
        expected["admitted"],
        expected["reason"],
        expected["message"],
    ), where
    # A hint stored by an earlier admission of the pod stays where this one stores none.
    stored.update({(pod.uid, name): hint for name, hint in result.affinities.items()})
    affinities = {
        name: words_of(stored.get((pod.uid, name), NO_HINT)) for name in expected["containers"]
    }
    assert affinities == {n: c["affinity"] for n, c in expected["containers"].items()}, where


def is_crash_elsewhere(record: dict[str, Any]) -> bool:
    """A recorded crash of a provider: there is nothing for a merge to see."""
    panic = record["expect"].get("panic")
    return panic is not None and (not record["hints"] or "nil pointer" in panic)


async def replay(scenario: dict[str, Any]) -> int:
    """Check one scenario; returns the number of admissions compared."""
    node, gates = scenario["node"], scenario["feature_gates"]
    stage = scenario.get("construct_error_stage")
    if stage == "topology_manager":
        with pytest.raises(StartError) as caught:
            decider(node, gates)
        assert str(caught.value) == scenario["construct_error"], scenario["name"]
        return 1
    built = decider(node, gates)
    pods: dict[str, Pod] = {}
    stored: Stored = {}
    checked = 0
    for number, step in enumerate(scenario.get("steps", ())):
        where = f"{scenario['name']} step {number}"
        records: list[tuple[Pod, dict[str, Any]]] = []
        if step["op"] == "admit":
            pod = pod_of(step["pod"])
            pods[pod.uid] = pod
            records.append((pod, step))
        elif step["op"] == "restart":
            node = {**node, **(step.get("node_override") or {})}
            if step.get("start_error_stage") == "topology_manager":
                with pytest.raises(StartError):
                    decider(node, gates)
                break
            built = decider(node, gates)
            stored = {}
            records.extend((pods[r["pod_uid"]], r) for r in step.get("readmit") or ())
        for pod, record in records:
            if not is_crash_elsewhere(record):
                await check_admission(built, pod, record, stored, where)
                checked += 1
    return checked


@pytest.mark.parametrize("file", FILES)
async def test_scenarios(file: str) -> None:
    checked = 0
    failed = []
    for scenario in scenarios(file):
        try:
            checked += await replay(scenario)
        except AssertionError as error:
            failed.append(f"{scenario['name']}: {error}")

    assert failed == []
    assert checked > 0
