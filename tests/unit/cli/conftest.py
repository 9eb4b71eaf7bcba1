"""Scripted services on the sockets of one directory, and a runner for the command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import grpc
import pytest
from click.testing import CliRunner, Result

from numalign.cli.main import cli
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import control_pb2 as ct
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import topology_pb2 as tm

_MESSAGES: dict[str, tuple[Any, Any]] = {
    "/numalign.v1.Admission/Admit": (ad.AdmitRequest, ad.AdmitResponse),
    "/numalign.v1.Admission/Release": (ad.ReleaseRequest, ad.ReleaseResponse),
    "/numalign.v1.Admission/ListAdmissions": (ad.ListAdmissionsRequest, ad.ListAdmissionsResponse),
    "/numalign.v1.Admission/GetNodeResources": (
        ad.GetNodeResourcesRequest,
        ad.GetNodeResourcesResponse,
    ),
    "/numalign.v1.Admission/ListDecisions": (dc.ListDecisionsRequest, dc.ListDecisionsResponse),
    "/numalign.v1.Admission/GetDecision": (dc.GetDecisionRequest, dc.GetDecisionResponse),
    "/numalign.v1.TopologyManager/ListHintProviders": (
        tm.ListHintProvidersRequest,
        tm.ListHintProvidersResponse,
    ),
    "/numalign.v1.Control/GetStatus": (ct.GetStatusRequest, ct.GetStatusResponse),
    "/numalign.v1.HintProvider/GetState": (hp.GetStateRequest, hp.GetStateResponse),
}

Answer = Callable[[Any, grpc.ServicerContext], Any]


class ScriptedService(grpc.GenericRpcHandler):
    """Answers the methods that it was told to, and remembers the requests."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.requests: list[Any] = []

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        if details.method not in self.answers:
            return None
        request, response = _MESSAGES[details.method]
        return grpc.unary_unary_rpc_method_handler(
            self._answer(self.answers[details.method]),
            request.FromString,
            response.SerializeToString,
        )

    def _answer(self, answer: Answer) -> Answer:
        def call(request: Any, context: grpc.ServicerContext) -> Any:
            self.requests.append(request)
            return answer(request, context)

        return call


class Scripted(Protocol):
    """Starts a scripted service in the test's directory."""

    def __call__(self, name: str, **answers: Any) -> ScriptedService: ...


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[Scripted]:
    """`scripted("cpu", GetState=response)`; a response, or a function of request and context."""
    servers = []

    def start(name: str, **answers: Any) -> ScriptedService:
        service = ScriptedService()
        for method, answer in answers.items():
            path = next(path for path in _MESSAGES if path.endswith(f"/{method}"))
            service.answers[path] = answer if callable(answer) else _constant(answer)
        server = grpc.server(ThreadPoolExecutor(2), handlers=[service])
        server.add_insecure_port(f"unix://{tmp_path}/{name}.sock")
        server.start()
        servers.append(server)
        return service

    yield start
    for server in servers:
        server.stop(None).wait()


def _constant(answer: Any) -> Answer:
    def call(request: object, context: object) -> Any:
        del request, context
        return answer

    return call


class Run(Protocol):
    """Runs the command with the Admission socket of the test's directory."""

    def __call__(self, *arguments: str, stdin: str | None = None) -> Result: ...


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("NUMALIGN_SOCKET", str(tmp_path / "admission.sock"))
    monkeypatch.delenv("NUMALIGN_CONFIG", raising=False)

    def run_command(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(cli, arguments, input=stdin, prog_name="numalign")

    return run_command
