"""Whether a refused pod would fit under another policy or scope: said, and true."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from numalign.config.loader import load_settings
from numalign.config.settings import Service
from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_json import pod_from_json
from numalign.process.node import Node
from numalign.process.simulation import copy_of, simulate
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import types_pb2 as pb
from numalign.v1.admission_pb2_grpc import AdmissionStub

GPU = "example.com/gpu"


def configuration(policy: str, scope: str, **section: Any) -> dict[str, Any]:
    """Two NUMA nodes with eight CPUs and two GPUs each; CPU 0 is the system's."""
    nodes = [
        {
            "id": node,
            "memory_bytes": 16 << 30,
            "cores": [
                {"id": core, "socket_id": node, "threads": [node * 8 + core]} for core in range(8)
            ],
        }
        for node in range(2)
    ]
    gpus = [{"id": f"g{i}", "numa_nodes": [i // 2]} for i in range(4)]
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "topologyManagerPolicy": policy,
        "topologyManagerScope": scope,
        "cpuManagerPolicy": "static",
        "reservedSystemCPUs": "0",
        "numalign": {
            "machine": {"numa_nodes": nodes},
            "devices": [{"resource": GPU, "devices": gpus}],
            "secondOwner": "tolerate",
            **section,
        },
    }


def a_pod(name: str, *containers: tuple[int, int]) -> core_pb2.Pod:
    """A Guaranteed pod; of each container its CPUs and its GPUs."""
    return pod_from_json(
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {
                "containers": [
                    {"name": f"c{i}", "resources": {"limits": limits, "requests": limits}}
                    for i, (cpus, gpus) in enumerate(containers)
                    for limits in [
                        {"cpu": str(cpus), "memory": "1Mi"} | ({GPU: str(gpus)} if gpus else {})
                    ]
                ]
            },
        }
    )


async def decided(policy: str, scope: str, *pods: core_pb2.Pod, **section: Any) -> ad.SimulatedPod:
    """What becomes of the last of these pods."""
    copy = copy_of(configuration(policy, scope, **section), (), None)
    outcomes = await simulate(copy, pods, pb.EXPLAIN_LEVEL_SUMMARY)
    return outcomes[-1]


def would_fit(outcome: ad.SimulatedPod) -> str:
    assert outcome.decision.verdict == pb.VERDICT_REJECTED
    (obstacle,) = outcome.decision.explanation.obstacles
    if obstacle.would_fit:
        assert f"What would have fitted: {obstacle.would_fit}." in (
            outcome.decision.explanation.summary
        )
    return obstacle.would_fit


async def test_what_one_node_cannot_hold_together_may_fit_one_by_one() -> None:
    outcome = await decided("single-numa-node", "pod", a_pod("p", (5, 0), (6, 0)))

    assert would_fit(outcome).endswith(
        '; or scope container would accept {0} for container "c0" and {1} for container "c1"'
    )


async def test_what_does_not_fit_one_by_one_may_fit_together() -> None:
    """Three GPUs need both nodes, and five CPUs one: together they are preferred on both."""
    outcome = await decided("restricted", "container", a_pod("p", (5, 3), (5, 0)))

    assert would_fit(outcome).endswith("scope pod would accept {0,1} for all containers")


@pytest.mark.parametrize(
    ("policy", "scope", "pods", "section"),
    [
        pytest.param("single-numa-node", "pod", [a_pod("p", (9, 0))], {}, id="one container"),
        pytest.param(
            "single-numa-node", "pod", [a_pod("p", (9, 0), (1, 0))], {}, id="nor does the other"
        ),
    ],
)
async def test_nothing_is_said(
    policy: str, scope: str, pods: list[core_pb2.Pod], section: dict[str, Any]
) -> None:
    assert "scope" not in would_fit(await decided(policy, scope, *pods, **section))


@pytest.mark.parametrize("seed", range(8))
async def test_it_is_said_if_and_only_if_the_other_scope_takes_the_pod(seed: int) -> None:
    draw = random.Random(seed)
    policy = draw.choice(("restricted", "single-numa-node"))
    scope, other = draw.sample(("pod", "container"), 2)
    before = a_pod("before", (draw.randint(1, 4), draw.randint(0, 1)))
    for number in range(6):
        sizes = [(draw.randint(1, 6), draw.choice((0, 0, 1, 2))) for _ in range(2)]
        pods = before, a_pod(f"p{number}", *sizes)
        outcome = await decided(policy, scope, *pods)
        if outcome.decision.verdict != pb.VERDICT_REJECTED:
            continue
        elsewhere = (await decided(policy, other, *pods)).decision
        said = f"scope {other} would accept" in would_fit(outcome)
        assert said == (elsewhere.verdict == pb.VERDICT_ADMITTED), sizes


@pytest.mark.parametrize(
    ("policy", "pods", "said"),
    [
        pytest.param(
            "single-numa-node",
            [a_pod("p", (9, 0))],
            "policy restricted would accept {0,1}",
            id="two nodes are needed",
        ),
        pytest.param(
            "restricted",
            [a_pod("a", (5, 0)), a_pod("b", (6, 0)), a_pod("p", (4, 0))],
            "policy best-effort would accept {0,1}",
            id="one node would be preferred",
        ),
        pytest.param(
            "single-numa-node",
            [a_pod("a", (8, 0)), a_pod("b", (1, 2)), a_pod("p", (3, 2))],
            "policy best-effort would accept {0}, with example.com/gpu from other nodes",
            id="not all from there",
        ),
        pytest.param(
            "single-numa-node",
            [a_pod("p", (1, 0), (9, 0))],
            'policy restricted would accept {0} for container "c0" and {0,1} for container "c1"',
            id="each container",
        ),
    ],
)
async def test_a_laxer_policy_may_take_it(policy: str, pods: list[core_pb2.Pod], said: str) -> None:
    assert would_fit(await decided(policy, "container", *pods)).endswith(said)


@pytest.mark.parametrize(
    ("cpus", "named"),
    [
        pytest.param(12, True, id="whole cores"),
        pytest.param(9, False, id="half a core"),
        pytest.param(14, False, id="more than whole cores"),
    ],
)
async def test_no_policy_is_named_whose_cpus_could_not_be_allocated(cpus: int, named: bool) -> None:
    """The laxer policies agree to the nodes; the allocation that follows wants whole cores."""
    document = configuration("single-numa-node", "container")
    document["cpuManagerPolicyOptions"] = {"full-pcpus-only": "true"}
    document["reservedSystemCPUs"] = "0,8"
    for node in document["numalign"]["machine"]["numa_nodes"]:
        threads = [cpu for core in node["cores"] for cpu in core["threads"]]
        node["cores"] = [
            {"id": core, "socket_id": node["id"], "threads": threads[core * 2 : core * 2 + 2]}
            for core in range(4)
        ]
    outcomes = await simulate(
        copy_of(document, (), None), [a_pod("p", (cpus, 0))], pb.EXPLAIN_LEVEL_SUMMARY
    )

    said = would_fit(outcomes[-1])
    assert ("policy restricted would accept {0,1}" in said) == named
    assert ("would accept" in said) == named


@pytest.mark.parametrize("seed", range(4))
async def test_the_strictest_laxer_policy_that_takes_the_pod_is_named(seed: int) -> None:
    draw = random.Random(seed)
    scope = draw.choice(("pod", "container"))
    before = a_pod("before", (draw.randint(1, 4), draw.randint(0, 1)))
    for number in range(5):
        sizes = [(draw.randint(1, 8), draw.choice((0, 0, 1, 3))) for _ in range(2)]
        pods = before, a_pod(f"p{number}", *sizes)
        outcome = await decided("single-numa-node", scope, *pods)
        if outcome.decision.verdict != pb.VERDICT_REJECTED:
            continue
        takers = []
        for policy in ("restricted", "best-effort"):
            elsewhere = (await decided(policy, scope, *pods)).decision
            takers += [policy] if elsewhere.verdict == pb.VERDICT_ADMITTED else []
        named = re.findall(r"policy (\S+) would accept", would_fit(outcome))
        assert named == takers[:1], sizes


async def test_nothing_is_kept_of_the_trial() -> None:
    """What the other scope would have taken is free for the next pod."""
    refused, next_pod = a_pod("p", (5, 0), (6, 0)), a_pod("q", (7, 0), (0, 2))
    outcome = await decided("single-numa-node", "pod", refused, next_pod)

    assert outcome.decision.verdict == pb.VERDICT_ADMITTED


async def _explained(directory: Path, *, then: core_pb2.Pod | None) -> str:
    """What the journal says would have fitted, of a pod that nobody asked about at the time."""
    config = directory / "config.json"
    config.write_text(json.dumps(configuration("single-numa-node", "pod")), encoding="utf-8")
    places = {"runtimeDirectory": str(directory / "r"), "stateDirectory": str(directory / "s")}
    node = await Node.open(load_settings(config, {}, is_root=False, overrides=places))
    try:
        await node.serving()
        stub = AdmissionStub(node.channel(Service.ADMISSION))
        # The first thing that changes on a node is that its shared CPUs become known.
        async for event in stub.WatchAssignments(ad.WatchAssignmentsRequest()):
            if event.shared_cpus.cpus:
                break
        await stub.Admit(ad.AdmitRequest(pod=a_pod("p", (5, 0), (6, 0))))
        if then is not None:
            await stub.Admit(ad.AdmitRequest(pod=then))
        found = await stub.GetDecision(dc.GetDecisionRequest(pod="p"))
        return found.decision.explanation.obstacles[0].would_fit
    finally:
        await node.close()


async def test_the_journal_says_so_too(tmp_path: Path) -> None:
    assert "scope container would accept {0}" in await _explained(tmp_path, then=None)


async def test_the_journal_does_not_say_so_once_the_node_has_changed(tmp_path: Path) -> None:
    said = await _explained(tmp_path, then=a_pod("q", (1, 0)))

    assert said
    assert "scope" not in said
