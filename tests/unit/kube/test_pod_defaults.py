from __future__ import annotations

from typing import Any

import pytest

from numalign.kube.pod_defaults import apply_defaults
from numalign.kube.pod_json import pod_from_json, pod_to_json


def _defaulted(spec: dict[str, Any]) -> dict[str, Any]:
    message = pod_from_json({"spec": spec})
    apply_defaults(message)
    after: dict[str, Any] = pod_to_json(message)["spec"]
    return after


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_requests_come_from_limits(kind: str) -> None:
    spec = {
        kind: [
            {
                "name": "c",
                "resources": {
                    "limits": {"cpu": "2", "memory": "1Gi", "e.com/x": "1"},
                    "requests": {"cpu": "1", "ephemeral-storage": "1"},
                },
            },
            {"name": "d"},
        ]
    }

    after = _defaulted(spec)[kind]

    assert after[0]["resources"]["requests"] == {
        "cpu": "1", "memory": "1Gi", "e.com/x": "1", "ephemeral-storage": "1",
    }  # fmt: skip
    assert "requests" not in after[1].get("resources", {})


@pytest.mark.parametrize(
    ("section", "containers", "expected"),
    [
        pytest.param(
            {"limits": {"cpu": "4", "memory": "8Gi"}}, [{"requests": {"cpu": "1500m"}}],
            {"limits": {"cpu": "4", "memory": "8Gi"},
             "requests": {"cpu": "1500m", "memory": "8Gi"}},
            id="requests-of-the-containers-then-own-limits"),
        pytest.param(
            {"limits": {"cpu": "4"}}, [{"limits": {"cpu": "1"}}, {"limits": {"cpu": "2"}}],
            {"limits": {"cpu": "4"}, "requests": {"cpu": "3"}},
            id="after-the-containers-own-defaults"),
        pytest.param(
            {"limits": {"cpu": "4"}, "requests": {"cpu": "2"}}, [{"requests": {"cpu": "1"}}],
            {"limits": {"cpu": "4"}, "requests": {"cpu": "2"}}, id="what-is-set-stays"),
        pytest.param(
            {"limits": {"cpu": "4"}}, [{"limits": {"hugepages-2Mi": "4Mi"}}],
            {"limits": {"cpu": "4", "hugepages-2Mi": "4Mi"},
             "requests": {"cpu": "4", "hugepages-2Mi": "4Mi"}}, id="huge-pages"),
        pytest.param(
            {"requests": {"cpu": "1"}}, [{"requests": {"memory": "1Gi"}}],
            {"requests": {"cpu": "1"}}, id="no-limits"),
        pytest.param({}, [{"limits": {"cpu": "1"}}], {}, id="empty-section"),
    ],
)  # fmt: skip
def test_pod_level(
    section: dict[str, Any], containers: list[dict[str, Any]], expected: dict[str, Any]
) -> None:
    spec = {
        "resources": section,
        "containers": [
            {"name": f"c{index}", "resources": resources}
            for index, resources in enumerate(containers)
        ],
    }

    assert _defaulted(spec)["resources"] == expected


def test_ports_and_restart_policy() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 53, "hostPort": 54, "protocol": "UDP"}]
    container = {"name": "c", "ports": ports}

    apart = _defaulted({"containers": [container]})
    shared = _defaulted({"containers": [container], "hostNetwork": True, "restartPolicy": "Never"})

    assert apart["containers"][0]["ports"] == [
        {"containerPort": 80, "protocol": "TCP"},
        {"hostPort": 54, "containerPort": 53, "protocol": "UDP"},
    ]
    assert shared["containers"][0]["ports"] == [
        {"hostPort": 80, "containerPort": 80, "protocol": "TCP"},
        {"hostPort": 54, "containerPort": 53, "protocol": "UDP"},
    ]
    assert (apart["restartPolicy"], shared["restartPolicy"]) == ("Always", "Never")
