"""The example provider of the SDK beside a real node."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from numalign.kube.core.v1 import core_pb2
from numalign.v1 import types_pb2 as pb
from numalign_client import AdmissionClient, ServiceUnavailable
from numalign_client.sdk import ProviderServer

EXAMPLE = Path(__file__).parents[2] / "clients" / "examples" / "licence-provider" / "provider.py"


def example() -> Any:
    """The example, which is a program and in no package."""
    spec = importlib.util.spec_from_file_location("licence_provider", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


licences = example()
LICENCE: str = licences.LICENCE

pytestmark = pytest.mark.processes


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Path]:
    """A whole node in one process; the directory of its sockets."""
    for name in ("config.yaml", "machine.yaml"):
        text = files("numalign.cli.demo").joinpath(name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text, encoding="utf-8")
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "numalign.cli", "serve", "all"),
            *("--config", str(tmp_path / "config.yaml")),
            *("--runtime-directory", str(tmp_path / "run")),
            *("--state-directory", str(tmp_path / "state")),
        ],
        env={name: value for name, value in os.environ.items() if not name.startswith("OTEL_")},
    )
    yield tmp_path / "run"
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


def eventually(attempt: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            attempt()
        except ServiceUnavailable:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        else:
            return


def pod(uid: str, licences: int, cpus: int, *, most_cpus: int = 0) -> core_pb2.Pod:
    """A pod with so many licences and CPUs; a Burstable one if it may use more CPUs."""
    message = core_pb2.Pod(metadata=core_pb2.ObjectMeta(uid=uid, name=uid, namespace="default"))
    container = message.spec.containers.add(name="c", image="i")
    for resource, amount in (("cpu", str(cpus)), ("memory", "1Gi"), (LICENCE, str(licences))):
        for amounts in (container.resources.limits, container.resources.requests):
            amounts[resource].string = amount
    if most_cpus:
        container.resources.limits["cpu"].string = str(most_cpus)
    return message


def test_a_licence_pulls_the_cpus_to_its_node(node: Path, tmp_path: Path) -> None:
    state = tmp_path / "licences.db"

    def serve() -> ProviderServer:
        return ProviderServer(
            licences.Licences({**licences.DONGLES, "dongle-3": 1}),
            node / "licences.sock",
            state=state,
            topology_manager=node / "topology.sock",
        )

    with AdmissionClient(node / "admission.sock") as numalign:
        eventually(lambda: numalign.list_admissions(timeout=60))
        with serve() as server:
            assert server.registrar is not None
            assert server.registrar.wait(60)
            first = numalign.admit(pod("one", 2, 2), timeout=60)
            second = numalign.admit(pod("two", 2, 2), timeout=60)
            third = numalign.admit(pod("three", 1, 2), explain="summary", timeout=60)

        assert [first.verdict, second.verdict] == [pb.VERDICT_ADMITTED] * 2
        held = {d.resource: list(d.ids) for d in second.allocations[0].devices}
        assert held == {LICENCE: ["dongle-2", "dongle-3"]}
        assert second.allocations[0].affinity.mask == 2
        assert second.allocations[0].cpus == "4,12"
        assert third.verdict == pb.VERDICT_REJECTED
        assert third.reason == "TopologyAffinityError"
        assert LICENCE in third.explanation.summary

        with pytest.raises(ServiceUnavailable, match="licences"):
            numalign.admit(pod("four", 0, 2), timeout=60)
        with serve():
            eventually(lambda: numalign.release("one", timeout=60))
            eventually(lambda: numalign.admit(pod("three", 1, 2), timeout=60))
            shared = numalign.admit(pod("shared", 1, 1, most_cpus=4), timeout=60)
            resized = numalign.admit(pod("shared", 1, 3, most_cpus=4), resize=True, timeout=60)
            listed = numalign.list_admissions(timeout=60)

    by_pod = {record.pod_uid: record for record in listed.admissions}
    assert sorted(by_pod) == ["shared", "three", "two"]
    assert resized.verdict == pb.VERDICT_ADMITTED
    assert not resized.already_admitted
    assert resized.allocations == shared.allocations == by_pod["shared"].allocations
    assert list(by_pod["three"].allocations[0].devices[0].ids) == ["dongle-0"]
