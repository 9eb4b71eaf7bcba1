"""What is seen on a node."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from tests.unit.process.second_owner.fake_node import KUBELET, FakeNode

from numalign.process.second_owner.facts import read_facts
from numalign.process.second_owner.rules import NodeFacts, Resource

Build = Callable[[FakeNode], object]


def seen(facts: NodeFacts) -> list[tuple[str, str]]:
    return [
        *((found.resource.value, found.policy) for found in facts.kubelet),
        *(("driver", found.name) for found in facts.drivers),
        *(("nri", found.name) for found in facts.nri),
    ]


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        pytest.param(lambda _: None, [], id="nothing"),
        pytest.param(
            lambda node: node.state("cpu_manager_state", "static"),
            [("cpu", "static")],
            id="CPU state",
        ),
        pytest.param(
            lambda node: node.state("memory_manager_state", "Static"),
            [("memory", "Static")],
            id="memory state",
        ),
        pytest.param(
            lambda node: node.configuration(
                f"{KUBELET}/config.yaml", cpuManagerPolicy="static", memoryManagerPolicy="None"
            ),
            [("cpu", "static"), ("memory", "None")],
            id="configuration",
        ),
        pytest.param(
            lambda node: node.file("etc/kubernetes/kubelet.conf", "kind: Config\n"),
            [],
            id="a kubeconfig",
        ),
        pytest.param(
            lambda node: node.listening(f"{KUBELET}/plugins_registry/dra.cpu-reg.sock"),
            [("driver", "dra.cpu")],
            id="a driver that is registered",
        ),
        pytest.param(
            lambda node: node.listening(f"{KUBELET}/plugins/dra.memory/dra.sock"),
            [("driver", "dra.memory")],
            id="a driver by its own socket",
        ),
        pytest.param(
            lambda node: node.left_behind(f"{KUBELET}/plugins_registry/dra.cpu-reg.sock"),
            [],
            id="a socket that was left behind",
        ),
        pytest.param(
            lambda node: node.file(f"{KUBELET}/plugins_registry/dra.cpu-reg.sock"),
            [],
            id="a file under its name",
        ),
        pytest.param(
            lambda node: node.file("opt/nri/plugins/10-balloons"),
            [("nri", "10-balloons")],
            id="a plugin of the runtime",
        ),
        pytest.param(
            lambda node: node.file("etc/nri/conf.d/10-topology-aware.conf"),
            [("nri", "10-topology-aware.conf")],
            id="a plugin's configuration",
        ),
        pytest.param(
            lambda node: node.process(42, "/bin/nri-resource-policy-balloons", "--metrics"),
            [("nri", "nri-resource-policy-balloons")],
            id="a plugin that runs",
        ),
        pytest.param(
            lambda node: node.process(43, "/bin/sh", "-c", "nri-resource-policy-balloons"),
            [],
            id="a process that talks of one",
        ),
    ],
)
def test_what_is_seen(node: FakeNode, build: Build, expected: list[tuple[str, str]]) -> None:
    build(node)
    facts = read_facts(node.root)

    assert (seen(facts), facts.unreadable) == (expected, ())


def test_where_it_is_seen(node: FakeNode) -> None:
    path = node.state("cpu_manager_state", "static")

    (found,) = read_facts(node.root).kubelet

    assert (found.resource, found.where) == (Resource.CPU, str(path))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("{", "Expecting property name", id="cut off"),
        pytest.param("[]", "names no policy", id="no mapping"),
        pytest.param('{"policyName": 1}', "names no policy", id="no text"),
    ],
)
def test_a_damaged_file_is_reported(node: FakeNode, text: str, reason: str) -> None:
    path = node.file(f"{KUBELET}/cpu_manager_state", text)

    (report,) = read_facts(node.root).unreadable

    assert report.startswith(f"{path}: ")
    assert reason in report


def test_a_damaged_configuration_is_reported(node: FakeNode) -> None:
    node.file(f"{KUBELET}/config.yaml", "a: [")

    (report,) = read_facts(node.root).unreadable

    assert "config.yaml" in report


def test_a_directory_in_the_place_of_a_file_is_reported(node: FakeNode) -> None:
    (node.root / KUBELET / "memory_manager_state").mkdir(parents=True)

    (report,) = read_facts(node.root).unreadable

    assert report.endswith(f"memory_manager_state: {os.strerror(21)}")
