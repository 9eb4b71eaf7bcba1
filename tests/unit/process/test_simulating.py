"""Simulate calls of a node in one process: what is answered."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from grpc.aio import AioRpcError
from tests.unit.client.dongles import Dongles
from tests.unit.process.observed_world import GPU, pod
from tests.unit.process.simulating_world import (
    all_of,
    directories,
    node_fixture,
    simulations_fixture,
)

from numalign.config.settings import Service
from numalign.errors import InvalidInput, QueueFull
from numalign.kube.core.v1 import core_pb2
from numalign.process.node import Node
from numalign.process.simulating import MOST_PODS, MOST_WAITING, Simulations
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import types_pb2 as pb
from numalign.v1.admission_pb2_grpc import AdmissionStub
from numalign.v1.topology_pb2_grpc import TopologyManagerStub
from numalign_client.sdk import ProviderServer

__all__ = ["node_fixture", "simulations_fixture"]


async def test_each_pod_is_judged_beside_those_before_it_and_nothing_is_kept(
    node: Node, simulations: Simulations, tmp_path: Path
) -> None:
    stub = AdmissionStub(node.channel(Service.ADMISSION))
    before = await stub.ListAdmissions(ad.ListAdmissionsRequest())

    pods = [pod("x", "6"), pod("y", "6"), pod("z", "1"), pod("held", "4")]
    first, *answers = await all_of(simulations, pods=pods)

    assert first.node.revision >= before.revision
    assert first.node.notes == ["no Node object is given: the Topology Manager alone decides"]
    decisions = [answer.pod.decision for answer in answers]
    assert [d.verdict for d in decisions] == [
        pb.VERDICT_ADMITTED,
        pb.VERDICT_REJECTED,
        pb.VERDICT_ADMITTED,
        pb.VERDICT_ADMITTED,
    ]
    assert decisions[1].reason == "TopologyAffinityError"
    assert [d.already_admitted for d in decisions] == [False, False, False, True]
    after = await stub.ListAdmissions(ad.ListAdmissionsRequest())
    assert after.admissions == before.admissions
    assert directories(tmp_path) == []


async def test_a_provider_that_has_registered_is_named(
    node: Node, simulations: Simulations, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir(exist_ok=True)
    socket_path = tmp_path / "run" / "d.sock"
    server = ProviderServer(Dongles(), socket_path)
    server.start()
    try:
        topology = TopologyManagerStub(node.channel(Service.TOPOLOGY))
        await topology.RegisterHintProvider(
            tm.RegisterHintProviderRequest(name="dongles", endpoint=f"unix://{socket_path}")
        )
        first, _ = await all_of(simulations, pods=[pod("x")])
    finally:
        await asyncio.to_thread(server.stop)
    assert "hint provider dongles is not asked" in first.node.notes


async def test_the_call_goes_through_the_admission_service(node: Node) -> None:
    stub = AdmissionStub(node.channel(Service.ADMISSION))
    call = stub.Simulate(ad.SimulateRequest(pods=[pod("x")], explain=pb.EXPLAIN_LEVEL_SUMMARY))
    _, answer = [part async for part in call]
    assert answer.pod.pod_uid == "uid-x"
    assert answer.pod.decision.explanation.summary

    with pytest.raises(AioRpcError, match="pods: Required value"):
        await stub.Simulate(ad.SimulateRequest()).read()


async def test_simulations_and_admissions_do_not_wait_for_each_other(
    node: Node, simulations: Simulations
) -> None:
    (turn,) = [part.turn for part in node.parts if part.turn is not None]
    async with turn():
        # No admission is decided on meanwhile.
        assert len(await all_of(simulations, pods=[pod("x")])) == 2
    stub = AdmissionStub(node.channel(Service.ADMISSION))
    async with aclosing(simulations.answers(ad.SimulateRequest(pods=[pod("x")] * 9))) as answers:
        await anext(answers)
        beside = await stub.Admit(ad.AdmitRequest(pod=pod("beside", gpu="0")))
        assert beside.verdict == pb.VERDICT_ADMITTED
        assert len([answer async for answer in answers]) == 9


async def test_a_pod_that_is_none_is_answered_by_itself(simulations: Simulations) -> None:
    wrong = pod("x")
    wrong.spec.containers[0].resources.limits["cpu"].string = "many"
    _, first, second = await all_of(simulations, pods=[wrong, pod("y")])
    assert first.pod.error.code == 3
    assert "spec.containers[0].resources.limits[cpu]" in first.pod.error.message
    assert "many" in first.pod.error.message
    assert second.pod.decision.verdict == pb.VERDICT_ADMITTED


@pytest.mark.parametrize(
    ("request_", "verdict"),
    [
        pytest.param({}, pb.VERDICT_REJECTED, id="as-it-is"),
        pytest.param({"policy": "best-effort"}, pb.VERDICT_ADMITTED, id="policy"),
        pytest.param({"configuration": "cpuManagerPolicy: none"}, pb.VERDICT_ADMITTED, id="under"),
        pytest.param(
            {
                "configuration": json.dumps(
                    {
                        "topologyManagerPolicy": "restricted",
                        "cpuManagerPolicy": "static",
                        "reservedSystemCPUs": "0,8",
                        "numalign": {"devices": {"file": "not-here.yaml"}},
                    }
                ),
                "policy": "single-numa-node",
            },
            pb.VERDICT_REJECTED,
            id="under-and-policy",
        ),
    ],
)
async def test_under_something_else_than_the_node_has(
    simulations: Simulations, request_: dict[str, str], verdict: pb.Verdict.ValueType
) -> None:
    _, answer = await all_of(simulations, pods=[pod("x", cpu="9")], **request_)
    assert answer.pod.decision.verdict == verdict, answer


async def test_devices_of_the_node_are_those_under_another_configuration(
    simulations: Simulations,
) -> None:
    _, first, second = await all_of(
        simulations, pods=[pod("x", gpu="3"), pod("y", gpu="1")], configuration="{}"
    )
    # Of four, one is held.
    assert [d.resource for d in first.pod.decision.allocations[0].devices] == [GPU]
    assert second.pod.decision.verdict == pb.VERDICT_REJECTED


async def test_a_node_object_brings_in_the_whole_chain(simulations: Simulations) -> None:
    described = core_pb2.Node(metadata=core_pb2.ObjectMeta(name="n1"))
    for name, amount in {"cpu": "5", "memory": "8Gi", "pods": "10", GPU: "4"}.items():
        described.status.allocatable[name].string = amount
        described.status.capacity[name].string = amount
    first, answer = await all_of(simulations, pods=[pod("x", cpu="2")], node=described)
    assert first.node.notes == []
    assert answer.pod.decision.reason == "OutOfcpu"


NAMELESS = core_pb2.Node()
NO_AMOUNT = core_pb2.Node(metadata=core_pb2.ObjectMeta(name="n1"))
NO_AMOUNT.status.allocatable["cpu"].string = "few"


@pytest.mark.parametrize(
    ("request_", "field", "said"),
    [
        pytest.param({"pods": []}, "pods", "Required value", id="no-pods"),
        pytest.param(
            {"pods": [core_pb2.Pod()] * (MOST_PODS + 1)},
            "pods",
            "Too many: 1001: must have at most 1000",
            id="too-many",
        ),
        pytest.param(
            {"policy": "strict"},
            "policy",
            'Unsupported value: "strict": supported values: "none", "best-effort", "restricted", '
            '"single-numa-node"',
            id="policy",
        ),
        pytest.param(
            {"scope": "node"},
            "scope",
            'Unsupported value: "node": supported values: "container", "pod"',
            id="scope",
        ),
        pytest.param({"explain": 9}, "explain", "Unsupported value: 9", id="explain"),
        pytest.param({"node": NAMELESS}, "node.metadata.name", "Required value", id="nameless"),
        pytest.param({"node": NO_AMOUNT}, "status.allocatable[cpu]", "few", id="no-amount"),
        pytest.param(
            {"configuration": "cpuManagerPolicy: 3"},
            "configuration",
            "cpuManagerPolicy: must be text, not 3 (write it in quotes)",
            id="configuration",
        ),
        pytest.param({"configuration": "a: ["}, "configuration", "line 2, column 1", id="no-yaml"),
        pytest.param({"configuration": "[1]"}, "configuration", "mapping", id="no-mapping"),
    ],
)
async def test_what_is_wrong_is_named(
    simulations: Simulations, request_: dict[str, Any], field: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await all_of(simulations, **{"pods": [pod("x")], **request_})
    (violation,) = refused.value.violations
    assert violation.field == field
    assert said in violation.description
    assert str(tmp_path) not in violation.description
    assert directories(tmp_path) == []


async def test_a_start_that_the_node_would_refuse_is_told_in_its_words(
    simulations: Simulations,
) -> None:
    under = "cpuManagerPolicy: static"  # and no CPU is reserved
    with pytest.raises(InvalidInput, match=r"configuration: .*reserved") as refused:
        await all_of(simulations, pods=[pod("x")], configuration=under)
    assert "numalign:" not in str(refused.value)


async def test_so_many_wait_for_their_turn(simulations: Simulations) -> None:
    request = ad.SimulateRequest(pods=[pod("x")])
    first = simulations.answers(request)
    await anext(first)
    others = [simulations.answers(request) for _ in range(MOST_WAITING)]
    waiting = [asyncio.ensure_future(anext(other)) for other in others]
    await asyncio.sleep(0)
    with pytest.raises(QueueFull, match="8 calls wait already"):
        await anext(simulations.answers(request))
    assert not any(each.done() for each in waiting)
    for each in waiting:
        each.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await first.aclose()
    assert len(await all_of(simulations, pods=[pod("x")])) == 2
