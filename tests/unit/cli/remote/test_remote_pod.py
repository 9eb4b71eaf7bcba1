"""Which pod of a node is spoken through, and what is run in it."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.cli.remote.pod import RemotePod, pod_of_node
from numalign.errors import Unavailable

ADMISSION = {"name": "admission", "args": ["serve", "admission", "--config", "/etc/n.yaml"]}
NRI = {"name": "nri", "command": ["numalign-agent"], "args": ["nri"]}


def a_pod(
    name: str = "numalign-a",
    *containers: dict[str, Any],
    default: str = "",
    created: str = "2026-01-01T00:00:00Z",
    ready: bool = True,
    **status: str,
) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "creationTimestamp": created,
            "annotations": {"kubectl.kubernetes.io/default-container": default} if default else {},
        },
        "spec": {"containers": list(containers or (ADMISSION,))},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            **status,
        },
    }


def chosen(*pods: dict[str, Any]) -> RemotePod:
    found = pod_of_node(pods, "n", "ns")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("containers", "default", "container", "place"),
    [
        pytest.param((NRI, ADMISSION), "", "admission", ("--config", "/etc/n.yaml"), id="serves"),
        pytest.param((NRI, ADMISSION), "nri", "nri", (), id="named by the pod"),
        pytest.param(
            (NRI, ADMISSION), "gone", "admission", ("--config", "/etc/n.yaml"), id="names none"
        ),
        pytest.param(
            ({"name": "all", "args": ["serve", "all", "--config=/c"]},),
            "",
            "all",
            ("--config", "/c"),
            id="equals sign",
        ),
        pytest.param(({"name": "x", "args": ["--config"]},), "", "x", (), id="no file"),
        pytest.param(({"name": "x"},), "", "x", (), id="no arguments"),
        pytest.param(
            ({"name": "x", "command": ["numalign", "serve", "all", "--config", "/c"]},),
            "",
            "x",
            ("--config", "/c"),
            id="in the command",
        ),
    ],
)
def test_the_container(
    containers: tuple[dict[str, Any], ...], default: str, container: str, place: tuple[str, ...]
) -> None:
    pod = chosen(a_pod("numalign-a", *containers, default=default))

    assert pod == RemotePod(
        node="n", namespace="ns", name="numalign-a", container=container, place=place
    )
    assert str(pod) == "pod ns/numalign-a on node n"


def test_of_several_the_newest_that_is_ready() -> None:
    later = "2026-02-01T00:00:00Z"
    old, new = a_pod("old"), a_pod("new", created=later)
    starting = a_pod("starting", created="2026-03-01T00:00:00Z", ready=False)

    assert chosen(new, old, starting).name == "new"
    assert chosen(old, starting).name == "old"
    assert chosen(starting, a_pod("pending", phase="Pending")).name == "starting"


def test_none() -> None:
    leaving = a_pod("leaving")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"

    assert pod_of_node([], "n", "ns") is None
    assert pod_of_node([leaving], "n", "ns") is None


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({"phase": "Pending"}, "Pending"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        ({"phase": "Failed", "reason": "Evicted", "message": "disk is full"}, "disk is full"),
    ],
    ids=["phase", "reason", "message"],
)
def test_one_that_does_not_run(status: dict[str, str], why: str) -> None:
    with pytest.raises(Unavailable) as refused:
        pod_of_node([a_pod("p") | {"status": status}], "n", "ns")

    assert str(refused.value) == (
        f"node n: pod ns/p does not run ({why}): `kubectl describe pod -n ns p` says more"
    )
