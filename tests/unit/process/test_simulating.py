"""Simulate calls of a node in one process: what is answered, and what becomes of the process."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from grpc.aio import AioRpcError
from tests.unit.client.dongles import Dongles
from tests.unit.process.observed_world import GPU, pod, settings

from numalign.config.settings import Service
from numalign.errors import InvalidInput, NumalignError, QueueFull
from numalign.kube.core.v1 import core_pb2
from numalign.process import simulating
from numalign.process.node import Node
from numalign.process.simulating import MOST_PODS, MOST_WAITING, Simulations
from numalign.process.simulation_frames import Order, order_bytes, order_from_bytes
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import control_pb2 as ct
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import types_pb2 as pb
from numalign.v1.admission_pb2_grpc import AdmissionStub
from numalign.v1.control_pb2_grpc import ControlStub
from numalign.v1.topology_pb2_grpc import TopologyManagerStub
from numalign_client.sdk import ProviderServer

LONG = 300.0
"""Seconds that a busy machine may take."""


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    """A node with pod `held` on it."""
    opened = await Node.open(settings(tmp_path, secondOwner="tolerate"))
    await opened.serving()
    for part in opened.parts:
        await part.ready()
    stub = AdmissionStub(opened.channel(Service.ADMISSION))
    held = await stub.Admit(ad.AdmitRequest(pod=pod("held", cpu="4")))
    assert held.verdict == pb.VERDICT_ADMITTED
    yield opened
    await opened.close()


@pytest.fixture
def simulations(node: Node, tmp_path: Path) -> Simulations:
    return Simulations(settings(tmp_path), node.channel(Service.TOPOLOGY))


async def all_of(simulations: Simulations, **request: Any) -> list[ad.SimulateResponse]:
    async with aclosing(simulations.answers(ad.SimulateRequest(**request))) as answers:
        return [answer async for answer in answers]


async def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


def directories(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "run").glob("simulation-*"))


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


async def test_who_no_longer_wants_the_answers_ends_the_process(
    simulations: Simulations, tmp_path: Path
) -> None:
    async with aclosing(simulations.answers(ad.SimulateRequest(pods=[pod("x")] * 500))) as answers:
        await anext(answers)
        (place,) = directories(tmp_path)
        assert children()
    assert not place.exists()
    assert not children()


async def test_a_call_that_is_cancelled_ends_the_process(node: Node, tmp_path: Path) -> None:
    call = AdmissionStub(node.channel(Service.ADMISSION)).Simulate(
        ad.SimulateRequest(pods=[pod(f"p{i}") for i in range(500)])
    )
    await call.read()
    assert directories(tmp_path)
    call.cancel()
    await until(lambda: not directories(tmp_path) and not children())


def children() -> list[str]:
    """The processes that simulate for this one."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            command = Path(f"/proc/{pid}/cmdline")
            if command.exists() and b"simulation_worker" in command.read_bytes():
                found.append(pid)
    return found


async def test_no_simulation_takes_longer_than_it_may(
    simulations: Simulations, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sleeper = (sys.executable, "-c", "import time; time.sleep(3600)")
    monkeypatch.setattr(simulating, "_COMMAND", sleeper)
    monkeypatch.setattr(simulating, "LONGEST_SECONDS", 1.5)
    with pytest.raises(TimeoutError, match=r"the simulation took longer than 1\.5 s"):
        await all_of(simulations, pods=[pod("x")])
    assert directories(tmp_path) == []


async def test_who_does_not_read_is_cancelled_and_holds_nobody_up(
    simulations: Simulations, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answering = "import os, time; os.write(0, bytes([0, 0, 0, 1]) + b'a'); time.sleep(3600)"
    monkeypatch.setattr(simulating, "_COMMAND", (sys.executable, "-c", answering))
    monkeypatch.setattr(simulating, "LONGEST_SECONDS", 4.0)

    async def reads_once() -> None:
        answers = simulations.answers(ad.SimulateRequest(pods=[pod("x")]))
        async with aclosing(answers):
            await anext(answers)
            await asyncio.Event().wait()

    reading = asyncio.ensure_future(reads_once())
    # On a busy machine its first answer may not come in time.
    with pytest.raises((asyncio.CancelledError, TimeoutError)):
        await reading
    assert directories(tmp_path) == []
    monkeypatch.undo()
    assert len(await all_of(simulations, pods=[pod("x")])) == 2


async def test_a_process_that_ends_early_is_told(
    simulations: Simulations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulating, "_COMMAND", (sys.executable, "-c", "raise SystemExit(3)"))
    with pytest.raises(NumalignError, match="ended early, with status 3"):
        await all_of(simulations, pods=[pod("x")])


async def test_what_a_killed_service_left_behind_is_removed(
    simulations: Simulations, tmp_path: Path
) -> None:
    (tmp_path / "run/simulation-old/state").mkdir(parents=True)
    await all_of(simulations, pods=[pod("x")])
    assert directories(tmp_path) == []


async def test_the_process_ends_when_the_service_is_gone(node: Node, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    control = ControlStub(node.channel(Service.TOPOLOGY))
    configuration = await control.GetConfiguration(ct.GetConfigurationRequest())
    order = Order(
        configuration=json.loads(configuration.document),
        under="",
        policy="",
        scope="",
        inventory=None,
        registered=(),
        admissions=(),
        revision=1,
        node=b"",
        pods=[pod(f"p{i}").SerializeToString() for i in range(1000)],
        explain=pb.EXPLAIN_LEVEL_FULL,
        place=str(place),
        log_format="json",
    )
    assert await asyncio.to_thread(ended_once_alone, order_bytes(order)) == 0
    assert list(place.iterdir()) == []


def ended_once_alone(order: bytes) -> int:
    """The exit status of a process whose service goes while it answers."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "numalign.process.simulation_worker"]
    with theirs, subprocess.Popen(command, stdin=theirs.fileno()) as process:
        with ours:
            ours.sendall(len(order).to_bytes(4) + order)
            # It has begun to answer, and cannot end: nobody reads what it says.
            assert ours.recv(4)
        return process.wait(LONG)


def test_an_order_is_read_as_it_was_written() -> None:
    order = Order(
        configuration={"a": 1},
        under="b: 2",
        policy="none",
        scope="pod",
        inventory=[{"resource": GPU, "devices": []}],
        registered=["licences"],
        admissions=[(b"\0record", b"\xffpod")],
        revision=7,
        node=b"node",
        pods=[b"one", b""],
        explain=2,
        place="/place",
        log_format="console",
    )
    assert order_from_bytes(order_bytes(order)) == order


def test_a_service_imports_none_of_it_at_its_start() -> None:
    code = (
        "import sys, numalign.process.admission_part; "
        "print([name for name in sys.modules if 'simulat' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"
