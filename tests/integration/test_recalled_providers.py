"""A new process of the Topology Manager asks the providers that registered with the old one."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from tests.integration.served_node import ServedNode
from tests.unit.client.dongles import DONGLE, Dongles, pod

from numalign.v1 import admission_pb2 as ad
from numalign.v1 import topology_pb2 as tm
from numalign.v1.topology_pb2_grpc import TopologyManagerStub
from numalign_client.sdk import ProviderServer

pytestmark = pytest.mark.processes

SERVICES = ("cpu", "memory", "device", "topology", "admission")
FORGET = "numalign providers --forget"


@pytest.fixture
def node() -> Iterator[ServedNode]:
    with tempfile.TemporaryDirectory(prefix="na-") as name:
        served = ServedNode(Path(name))
        served.start(*SERVICES)
        yield served
        # Who watches others goes first: else they would wait for it.
        served.stop("admission", "topology", "cpu", "memory", "device")


@contextmanager
def dongles(node: ServedNode) -> Iterator[None]:
    """The provider as its own server, which keeps its books and does not register."""
    server = ProviderServer(
        Dongles(), node.directory / "run" / "dongles.sock", state=node.directory / "dongles.db"
    )
    server.start()
    try:
        yield
    finally:
        server.stop()


@contextmanager
def topology(node: ServedNode) -> Iterator[TopologyManagerStub]:
    with grpc.insecure_channel(f"unix:{node.directory}/run/topology.sock") as channel:
        yield TopologyManagerStub(channel)


def register(node: ServedNode, socket: str = "dongles.sock") -> None:
    request = tm.RegisterHintProviderRequest(
        name="dongles", endpoint=f"unix://{node.directory}/run/{socket}"
    )
    with topology(node) as stub:
        stub.RegisterHintProvider(request, timeout=60, wait_for_ready=True)


def exchange_topology(node: ServedNode) -> None:
    node.kill("topology")
    node.start("topology")


def typed(node: ServedNode, *command: str) -> tuple[int, str]:
    """Exit code of a command and what it said; a process of its own, as an operator's is."""
    socket = str(node.directory / "run" / "admission.sock")
    line = [sys.executable, "-m", "numalign.cli", *command, "--socket", socket, "--timeout", "60"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def until_ready(node: ServedNode) -> None:
    deadline = time.monotonic() + 60
    while (answer := typed(node, "ready", "topology"))[0] != 0:
        assert time.monotonic() < deadline, answer
        time.sleep(0.1)


def devices(answer: ad.AdmitResponse) -> list[str]:
    return [i for a in answer.allocations for d in a.devices for i in d.ids]


def refusal(node: ServedNode, uid: str) -> str:
    """Why a pod cannot be decided on, once the services have found each other again."""
    channel, stub = node.admission()
    deadline = time.monotonic() + 60
    with channel:
        while True:
            with pytest.raises(grpc.RpcError) as down:
                stub.Admit(ad.AdmitRequest(pod=pod(uid, 0)), timeout=60)
            assert down.value.code() is grpc.StatusCode.UNAVAILABLE
            details = str(down.value.details())
            if "dongles" in details or time.monotonic() > deadline:
                return details
            time.sleep(0.1)


def test_it_is_asked_without_registering_again(node: ServedNode) -> None:
    with dongles(node):
        register(node)
        assert devices(node.admit(pod("a", 1))) == ["d0"]
        exchange_topology(node)
        answer = node.admit(pod("b", 1))
        assert devices(answer) == ["d1"]
        assert {d.resource for a in answer.allocations for d in a.devices} == {DONGLE}


def test_one_that_does_not_come_back_is_named_and_can_be_forgotten(node: ServedNode) -> None:
    with dongles(node):
        register(node)
        assert devices(node.admit(pod("a", 1))) == ["d0"]
    exchange_topology(node)
    assert FORGET in refusal(node, "b")
    until_ready(node)
    code, said = typed(node, "providers", "--forget", "dongles")
    assert code == 0, said
    assert "dongles" not in said
    assert devices(node.admit(pod("b", 0))) == []
    # It stays forgotten, and has its pods back when it registers again.
    exchange_topology(node)
    assert devices(node.admit(pod("c", 0))) == []
    with dongles(node):
        register(node)
        assert devices(node.admit(pod("d", 1))) == ["d1"]
    code, said = typed(node, "providers", "--forget", "nobody")
    assert code == 1
    assert 'no hint provider "nobody" is registered' in said
