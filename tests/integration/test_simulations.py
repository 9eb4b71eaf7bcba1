"""Simulate calls of a node of five processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import grpc
import pytest
import yaml
from tests.integration.served_node import ServedNode
from tests.unit.process.observed_world import document, pod

from numalign.config.settings import CORE_SERVICES
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

pytestmark = pytest.mark.processes

LONG = 300.0
"""Seconds that a busy machine may take."""


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedNode]:
    directory = tmp_path_factory.mktemp("simulations")
    served = ServedNode(directory)
    written = document(directory, secondOwner="tolerate")
    (directory / "config.yaml").write_text(yaml.safe_dump(written))
    served.start(*(service.value for service in CORE_SERVICES))
    assert served.admit(pod("a", cpu="4")).verdict == pb.VERDICT_ADMITTED
    yield served
    served.stop()


def test_admissions_go_on_beside_a_simulation(processes: ServedNode) -> None:
    pods = [pod(f"p{i}", cpu=str(1 + i % 3), gpu=str(i % 3)) for i in range(800)]
    channel, stub = processes.admission()
    with channel:
        call = stub.Simulate(
            ad.SimulateRequest(pods=pods, explain=pb.EXPLAIN_LEVEL_FULL), timeout=LONG
        )
        first = next(call)
        admitted = processes.admit(pod("beside", cpu="2"))
        assert admitted.verdict == pb.VERDICT_ADMITTED
        processes.release("uid-beside")
        answers = list(call)
    assert first.HasField("node")
    assert [answer.pod.pod_uid for answer in answers] == [f"uid-p{i}" for i in range(800)]
    # As it was when the simulation began.
    assert not any("beside" in str(answer.pod.decision.explanation) for answer in answers)


def test_an_error_names_field_and_value(processes: ServedNode) -> None:
    channel, stub = processes.admission()
    with channel, pytest.raises(grpc.RpcError) as refused:
        list(stub.Simulate(ad.SimulateRequest(pods=[pod("x")], policy="strict"), timeout=LONG))
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert 'policy: Unsupported value: "strict"' in str(refused.value.details())


def test_devices_are_needed_only_where_the_node_is_told_of_them(processes: ServedNode) -> None:
    processes.stop("device")
    channel, stub = processes.admission()
    try:
        with channel:
            _, answer = stub.Simulate(ad.SimulateRequest(pods=[pod("x")]), timeout=LONG)
            assert answer.pod.decision.verdict == pb.VERDICT_ADMITTED
            request = ad.SimulateRequest(pods=[pod("x")], configuration="{}")
            with pytest.raises(grpc.RpcError, match="hint provider device"):
                list(stub.Simulate(request, timeout=LONG))
    finally:
        processes.start("device")


def test_a_service_ends_although_it_simulates(processes: ServedNode) -> None:
    pods = [pod(f"p{i}") for i in range(800)]
    channel, stub = processes.admission()
    with channel:
        call = stub.Simulate(ad.SimulateRequest(pods=pods, explain=pb.EXPLAIN_LEVEL_FULL))
        next(call)
        processes.stop("admission")
        # What was sent before is there.
        with suppress(grpc.RpcError):
            list(call)
    assert not list((processes.directory / "run").glob("simulation-*"))
    processes.start("admission")
