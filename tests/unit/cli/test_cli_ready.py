"""`numalign ready`: what a probe learns of one service, by its exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from tests.unit.cli.conftest import Run

from numalign.config.health_names import HEALTH_NAMES
from numalign.config.settings import Service
from numalign.process import admission_part, dra_part, provider_parts, topology_part

Serve = Callable[[str, str, bool], None]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """`serve("cpu", "example.v1.Service", True)`: a server that lives, and what it says."""
    servers = []

    def start(service: str, name: str, serving: bool) -> None:
        servicer = health.HealthServicer()
        states = health_pb2.HealthCheckResponse
        servicer.set("", states.SERVING)
        servicer.set(name, states.SERVING if serving else states.NOT_SERVING)
        server = grpc.server(ThreadPoolExecutor(2))
        health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
        server.add_insecure_port(f"unix://{tmp_path}/{service}.sock")
        server.start()
        servers.append(server)

    yield start
    for server in servers:
        server.stop(None).wait()


def test_the_names_are_those_of_the_services() -> None:
    assert HEALTH_NAMES == {
        Service.ADMISSION: admission_part.HEALTH_NAME,
        Service.TOPOLOGY: topology_part.HEALTH_NAME,
        Service.CPU: provider_parts.HEALTH_NAME,
        Service.MEMORY: provider_parts.HEALTH_NAME,
        Service.DEVICE: provider_parts.HEALTH_NAME,
        Service.DRA: dra_part.HEALTH_NAME,
    }


@pytest.mark.parametrize("service", HEALTH_NAMES)
def test_a_ready_service(run: Run, serve: Serve, service: Service) -> None:
    serve(service.value, HEALTH_NAMES[service], True)

    result = run("ready", service.value)

    assert (result.exit_code, result.stdout) == (0, f"{service.value} SERVING\n")


def test_one_that_is_not_ready_lives(run: Run, serve: Serve) -> None:
    serve("admission", HEALTH_NAMES[Service.ADMISSION], False)

    assert run("ready", "admission").exit_code == 1
    assert '"status": "NOT_SERVING"' in run("ready", "admission", "-o", "json").stdout
    assert run("ready", "admission", "--live").exit_code == 0


def test_nobody_there(run: Run, tmp_path: Path) -> None:
    result = run("ready", "cpu")

    assert result.exit_code == 1
    assert f"cannot reach the cpu service at {tmp_path}/cpu.sock" in result.stderr


def test_a_service_that_this_node_does_not_have(run: Run) -> None:
    result = run("ready", "dra")

    assert result.exit_code == 1
    assert "dra: this node has no such service" in result.stderr


def test_another_server_on_the_socket(run: Run, serve: Serve) -> None:
    serve("cpu", "example.v1.Other", True)

    result = run("ready", "cpu")

    assert result.exit_code == 1
    assert "NOT_FOUND" in result.stderr
