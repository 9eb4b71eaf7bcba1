"""A provider's server, and how it keeps itself registered."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.unit.client.dongles import DONGLE, Dongles

from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import types_pb2 as pb
from numalign.v1.hint_provider_pb2_grpc import HintProviderStub
from numalign_client import AlreadyRegistered
from numalign_client.provider.registration import Registrar, Registration
from numalign_client.sdk import ProviderServer

_LIST = "/numalign.v1.TopologyManager/ListHintProviders"
_REGISTER = "/numalign.v1.TopologyManager/RegisterHintProvider"


class FakeManager(grpc.GenericRpcHandler):
    """Remembers registrations, or refuses them."""

    def __init__(self) -> None:
        self.requests: list[tm.RegisterHintProviderRequest] = []
        self.known: list[tm.HintProviderStatus] = []
        self.refuses = False

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        if details.method == _LIST:
            return grpc.unary_unary_rpc_method_handler(
                self._list,
                tm.ListHintProvidersRequest.FromString,
                tm.ListHintProvidersResponse.SerializeToString,
            )
        if details.method == _REGISTER:
            return grpc.unary_unary_rpc_method_handler(
                self._register,
                tm.RegisterHintProviderRequest.FromString,
                tm.RegisterHintProviderResponse.SerializeToString,
            )
        return None

    def _list(self, _: object, context: object) -> tm.ListHintProvidersResponse:
        del context
        return tm.ListHintProvidersResponse(providers=self.known)

    def _register(
        self, request: tm.RegisterHintProviderRequest, context: grpc.ServicerContext
    ) -> tm.RegisterHintProviderResponse:
        self.requests.append(request)
        if self.refuses:
            context.abort(grpc.StatusCode.ALREADY_EXISTS, "name: taken")
        self.known.append(tm.HintProviderStatus(name=request.name, endpoint=request.endpoint))
        return tm.RegisterHintProviderResponse(provider=self.known[-1])


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[FakeManager]:
    manager = FakeManager()
    server = grpc.server(ThreadPoolExecutor(2), handlers=[manager])
    server.add_insecure_port(f"unix://{tmp_path}/topology.sock")
    server.start()
    yield manager
    server.stop(None).wait()


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_server_listens_and_registers(manager: FakeManager, tmp_path: Path) -> None:
    socket = tmp_path / "hints.sock"
    server = ProviderServer(
        Dongles(),
        socket,
        topology_manager=tmp_path / "topology.sock",
        ignore_failure=True,
        timeout=0.25,
    )
    with server, grpc.insecure_channel(f"unix://{socket}") as channel:
        assert server.registrar is not None
        assert server.registrar.wait(60)
        info = HintProviderStub(channel).GetInfo(hp.GetInfoRequest(), timeout=60)
        health = health_pb2_grpc.HealthStub(channel).Check(
            health_pb2.HealthCheckRequest(service="numalign.v1.HintProvider"), timeout=60
        )

    assert list(info.resources) == [DONGLE]
    assert health.status == health_pb2.HealthCheckResponse.SERVING
    (request,) = manager.requests
    assert request.name == "dongles"
    assert request.endpoint == f"unix://{socket}"
    assert request.failure_policy == pb.FAILURE_POLICY_IGNORE
    assert request.timeout.ToMilliseconds() == 250


def test_it_registers_again_after_a_restart(manager: FakeManager, tmp_path: Path) -> None:
    with grpc.insecure_channel(f"unix://{tmp_path}/topology.sock") as channel:
        registration = Registration(name="dongles", endpoint="unix:///x")
        registrar = Registrar(channel, registration, interval=0.02)
        registrar.start()
        assert registrar.wait(60)
        manager.known.clear()
        eventually(lambda: len(manager.requests) == 2)
        registrar.stop()

    assert manager.requests[0].failure_policy == pb.FAILURE_POLICY_FAIL
    assert not manager.requests[0].HasField("timeout")


def test_it_waits_for_a_manager_that_is_not_there(tmp_path: Path) -> None:
    with grpc.insecure_channel(f"unix://{tmp_path}/none.sock") as channel:
        registrar = Registrar(channel, Registration(name="d", endpoint="e"), interval=0.02)
        registrar.start()

        assert not registrar.wait(0.2)
        registrar.stop()


def test_a_refusal_is_told(manager: FakeManager, tmp_path: Path) -> None:
    manager.refuses = True
    with grpc.insecure_channel(f"unix://{tmp_path}/topology.sock") as channel:
        registrar = Registrar(channel, Registration(name="d", endpoint="e"))
        registrar.start()
        with pytest.raises(AlreadyRegistered, match="taken"):
            registrar.wait(60)
        registrar.stop()
