"""Simulations, by both clients."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.unit.client.conftest import ScriptedAdmission

from numalign.kube.core.v1 import core_pb2
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb
from numalign_client import (
    AsyncClient,
    Client,
    Decision,
    InvalidRequest,
    Retry,
    ServiceUnavailable,
    Simulation,
    UnsupportedRequest,
)

Call = Callable[..., Any]


def _blocking(socket: Path, *args: Any, **options: Any) -> Any:
    with Client(socket, retry=Retry(first=math.inf)) as client:
        return client.simulate(*args, **options)


def _with_asyncio(socket: Path, *args: Any, **options: Any) -> Any:
    async def run() -> Any:
        async with AsyncClient(socket, retry=Retry(first=math.inf)) as client:
            return await client.simulate(*args, **options)

    return asyncio.run(run())


@pytest.fixture(params=[_blocking, _with_asyncio], ids=["blocking", "asyncio"])
def call(request: pytest.FixtureRequest, socket: Path) -> Call:
    return lambda *args, **options: request.param(socket, *args, **options)


def pod(name: str) -> core_pb2.Pod:
    return core_pb2.Pod(metadata=core_pb2.ObjectMeta(name=name, namespace="default", uid=name))


def test_outcomes_are_in_the_order_of_the_pods(call: Call, admission: ScriptedAdmission) -> None:
    admission.decisions += [
        ad.AdmitResponse(verdict=pb.VERDICT_ADMITTED),
        ad.AdmitResponse(verdict=pb.VERDICT_REJECTED, reason="OutOfcpu"),
    ]

    found: Simulation = call([pod("a"), pod("b"), pod("c")], policy="restricted", scope="pod")

    first, second, third = found.outcomes
    assert isinstance(first, Decision)
    assert (first.pod_uid, first.admitted) == ("a", True)
    assert isinstance(second, Decision)
    assert (second.pod_uid, second.reason) == ("b", "OutOfcpu")
    assert isinstance(third, InvalidRequest)
    assert "spec.containers: Required value" in str(third)
    assert (found.notes, found.revision, found.all_admitted) == (("left out",), 7, False)
    assert admission.requests == [
        ad.SimulateRequest(
            pods=[pod("a"), pod("b"), pod("c")],
            policy="restricted",
            scope="pod",
            explain=pb.EXPLAIN_LEVEL_NONE,
        )
    ]


def test_what_is_given_reaches_the_service(
    call: Call, admission: ScriptedAdmission, tmp_path: Path
) -> None:
    admission.decisions += [ad.AdmitResponse(verdict=pb.VERDICT_ADMITTED)]
    file = tmp_path / "config.yaml"
    file.write_text("cpuManagerPolicy: none\n")
    node = core_pb2.Node(metadata=core_pb2.ObjectMeta(name="n1"))

    found = call([pod("a")], configuration=file, node=node, explain="full")

    assert found.all_admitted
    (request,) = admission.requests
    assert request.configuration == "cpuManagerPolicy: none\n"
    assert request.node == node
    assert request.explain == pb.EXPLAIN_LEVEL_FULL


def test_an_empty_file_is_not_the_configuration_of_the_node(
    call: Call, admission: ScriptedAdmission, tmp_path: Path
) -> None:
    file = tmp_path / "config.yaml"
    file.touch()

    call([], configuration=file)

    assert admission.requests[0].configuration == "{}"


@pytest.mark.parametrize(
    ("code", "error"),
    [
        pytest.param(grpc.StatusCode.UNIMPLEMENTED, UnsupportedRequest, id="an-old-service"),
        pytest.param(grpc.StatusCode.INVALID_ARGUMENT, InvalidRequest, id="wrong"),
        pytest.param(grpc.StatusCode.UNAVAILABLE, ServiceUnavailable, id="down"),
    ],
)
def test_errors_are_those_of_the_client(
    call: Call, admission: ScriptedAdmission, code: grpc.StatusCode, error: type[Exception]
) -> None:
    admission.fails = lambda context: context.abort(code, "why")
    with pytest.raises(error, match="why"):
        call([pod("a")])


def test_an_explain_level_that_does_not_exist_is_refused_before_anything_is_sent(
    call: Call, admission: ScriptedAdmission
) -> None:
    with pytest.raises(ValueError, match="explain must be one of"):
        call([pod("a")], explain="all")
    assert admission.requests == []
