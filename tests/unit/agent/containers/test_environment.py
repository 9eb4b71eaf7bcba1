"""What a process is started with, and what it is refused for."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.agent.made import container, pod

from numalign_agent.containers.environment import CannotProvide, ProcessSpec, process_spec
from numalign_agent.containers.spec import container_of


def spec_of(**fields: Any) -> ProcessSpec:
    of = pod(
        "web",
        container("c", **fields),
        metadata={"labels": {"app": "shop"}},
        nodeName="node-a",
    )
    return process_spec(of, container_of(of, "c"), {"GPU": "g0"})


def test_a_whole_process() -> None:
    spec = spec_of(
        command=["serve", "--name=$(NAME)"],
        args=["$(GPU)", "$(NONE)"],
        workingDir="/srv",
        env=[
            {"name": "FIRST", "value": "1"},
            {"name": "NAME", "value": "$(FIRST)-$(LATER)"},
            {"name": "LATER", "value": "2"},
        ],
    )

    assert spec.argv == ("serve", "--name=1-$(LATER)", "g0", "$(NONE)")
    assert spec.directory == "/srv"
    assert spec.environment["HOSTNAME"] == "web"
    assert spec.environment["GPU"] == "g0"
    assert spec.environment["PATH"].startswith("/usr/local/sbin")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "web"),
        ("metadata.namespace", "default"),
        ("metadata.uid", "uid-web"),
        ("metadata.labels['app']", "shop"),
        ("metadata.labels['none']", ""),
        ("spec.nodeName", "node-a"),
    ],
)
def test_the_downward_api(path: str, value: str) -> None:
    spec = spec_of(env=[{"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}])

    assert spec.environment["X"] == value


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param({"command": []}, "container c: no command", id="an image's command"),
        pytest.param({"envFrom": [{}]}, "envFrom is not supported", id="envFrom"),
        pytest.param(
            {"env": [{"name": "S", "valueFrom": {"secretKeyRef": {"name": "s"}}}]},
            "container c: env S: secretKeyRef is not supported",
            id="a secret",
        ),
        pytest.param(
            {"env": [{"name": "S", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]},
            "env S: fieldPath status.podIP is not supported",
            id="an address that there is not",
        ),
    ],
)
def test_what_no_process_can_have(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(CannotProvide, match=message):
        spec_of(**fields)
