"""Cases of users that must be decided as a kubelet decides them, in the mode that each names.

Where a case is about pods, a whole node decides on them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.user_cases import CASES, agent_of, node_of, numa_node, pod, single_threads

from numalign.config.scenario_node import ScenarioNode
from numalign.model.cpu_set import CpuSet
from numalign.model.hint import TopologyHint
from numalign.model.numa_mask import mask_of
from numalign.topology.numa_info import NumaInfo, narrowest
from numalign.topology.policy_best_effort import BestEffortPolicy
from numalign.topology.policy_restricted import RestrictedPolicy
from numalign.v1 import types_pb2 as pb

TESTED = {"uc-01", "uc-09", "uc-13", "uc-19", "uc-22", "uc-29", "uc-32"}


@pytest.fixture
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="uc-") as path:
        yield Path(path)


def test_every_case_that_must_match_is_tested() -> None:
    assert {i for i, c in CASES.items() if c["kind"] == "must-match-kubelet"} == TESTED


@pytest.mark.parametrize(
    ("policy", "admitted"),
    [
        pytest.param("restricted", False, id="restricted"),
        pytest.param("best-effort", True, id="best-effort"),
    ],
)
async def test_uc_01_preference_is_judged_on_an_empty_machine(
    policy: str, admitted: bool, directory: Path
) -> None:
    # What is reserved is not free, and counts in the size of a node: 3, 4 and 4 of 6 are free.
    nodes = [numa_node(n, single_threads(6 * n, 6)) for n in range(3)]
    machine = node_of(nodes, policy=policy, reserved="0-2,6-7,12-13")
    async with agent_of("uc-01", machine, directory) as agent:
        decision = await agent.admit(pod("p", cpu="5"))

    best = decision.explanation.merges[0].best
    assert (best.mask, best.preferred) == (0b011, False)
    if admitted:
        assert decision.verdict == pb.VERDICT_ADMITTED
        assert decision.allocations[0].affinity.mask == 0b011
    else:
        assert decision.verdict == pb.VERDICT_REJECTED
        assert decision.reason == "TopologyAffinityError"


async def test_uc_09_half_reserved_cores_are_not_whole(directory: Path) -> None:
    nodes = [numa_node(0, [[0, 6], [2, 8], [4, 10]]), numa_node(1, [[1, 7], [3, 9], [5, 11]])]
    machine = node_of(nodes, reserved="1,6", options={"full-pcpus-only": "true"})
    async with agent_of("uc-09", machine, directory) as agent:
        decision = await agent.admit(pod("p", cpu="10"))
        fitting = await agent.admit(pod("q", cpu="8"))

    assert decision.verdict == pb.VERDICT_REJECTED
    assert decision.reason == "SMTAlignmentError"
    assert "available physical CPUs = 8, requested CPUs = 10" in decision.message
    assert fitting.allocations[0].cpus == "2-5,8-11"


@pytest.mark.parametrize("policy", ["restricted", "single-numa-node"])
async def test_uc_13_hugepages_left_over_two_nodes(policy: str, directory: Path) -> None:
    pages = [{"page_size_kib": 2048, "count": 10}]
    nodes = [numa_node(n, single_threads(4 * n, 4), hugepages=pages) for n in range(2)]

    def machine(policy: str) -> ScenarioNode:
        return node_of(nodes, policy=policy, reserved="0", memory=True)

    # Admitted under another policy: restricted would not have had it either.
    async with agent_of("uc-13", machine("best-effort"), directory) as agent:
        spread = await agent.admit(pod("pod1", cpu="1", memory="24Mi", hugepages_2Mi="24Mi"))
    async with agent_of("uc-13", machine(policy), directory) as agent:
        decision = await agent.admit(pod("pod2", cpu="2", memory="24Mi", hugepages_2Mi="16Mi"))

    blocks = {b.resource: list(b.numa_nodes) for b in spread.allocations[0].memory}
    assert blocks["hugepages-2Mi"] == [0, 1]
    assert decision.verdict == pb.VERDICT_REJECTED
    assert decision.reason == "TopologyAffinityError"


@pytest.mark.parametrize("cpus", [pytest.param(4, id="four"), pytest.param(6, id="six")])
async def test_uc_19_pod_level_cpus_stay_over_a_restart(cpus: int, directory: Path) -> None:
    gates = {"PodLevelResources": True, "PodLevelResourceManagers": True}
    machine = node_of(
        [numa_node(0, single_threads(0, cpus))], policy="restricted", scope="pod", reserved="0"
    )
    whole = pod("p", {"cpu": "2", "memory": "1Gi"})
    async with agent_of("uc-19", machine, directory, gates) as agent:
        first = await agent.admit(whole)
        shared = await agent.shared_cpus()
    async with agent_of("uc-19", machine, directory, gates) as agent:
        again = await agent.admit(whole)
        assert await agent.shared_cpus() == shared

    assert first.pod_allocation.cpus == again.pod_allocation.cpus == "1-2"
    assert shared == ("0,3" if cpus == 4 else "0,3-5")


async def test_uc_22_no_reserved_cpu_on_a_hybrid_machine(directory: Path) -> None:
    double = [[cpu, cpu + 1] for cpu in range(0, 16, 2)]
    machine = node_of([numa_node(0, double + single_threads(16, 12))], reserved="0")
    async with agent_of("uc-22", machine, directory) as agent:
        decision = await agent.admit(pod("p", cpu="2"))

    given = CpuSet.parse(decision.allocations[0].cpus)
    assert len(given) == 2
    assert not {0, 1} & set(given)


async def test_uc_29_odd_numbers_of_free_cpus_always_get_an_answer(directory: Path) -> None:
    nodes = [numa_node(0, [[0, 8], [1, 9], [2, 10], [3, 11]])]
    nodes.append(numa_node(1, [[4, 12], [5, 13], [6, 14], [7, 15]]))
    options = {"full-pcpus-only": "true", "distribute-cpus-across-numa": "true"}
    machine = node_of(nodes, reserved="0,4", options=options)
    verdicts = {}
    async with agent_of("uc-29", machine, directory) as agent:
        for wanted in range(2, 16, 2):
            uid = f"p{wanted}"
            decision = await agent.admit(pod(uid, cpu=str(wanted)))
            verdicts[wanted] = decision.verdict
            if decision.verdict == pb.VERDICT_ADMITTED:
                given = CpuSet.parse(decision.allocations[0].cpus)
                assert len(given) == wanted
                assert not {0, 4} & set(given)
                await agent.release(uid)
        after = await agent.admit(pod("last", cpu="2"))

    # 6 whole cores are free: 12 CPUs at most on whole cores.
    assert {n for n, v in verdicts.items() if v == pb.VERDICT_ADMITTED} == {2, 4, 6, 8, 10, 12}
    assert after.verdict == pb.VERDICT_ADMITTED


def test_uc_32_lists_that_prefer_different_masks() -> None:
    """About hints that no pod can bring about here, so the policies are asked themselves."""
    info = NumaInfo(nodes=(0, 1, 2, 3), default_mask=mask_of([0, 1, 2, 3]))
    answers = [
        {"a": (TopologyHint(mask_of([0, 1]), True),)},
        {"b": (TopologyHint(mask_of([0, 2]), True),)},
    ]

    refused = RestrictedPolicy(info, narrowest).decide(answers)
    admitted = BestEffortPolicy(info, narrowest).decide(answers)

    assert refused.best == admitted.best == TopologyHint(mask_of([0]), False)
    assert not refused.admitted
    assert admitted.admitted
