"""What the API server would have filled in."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.agent.manifests.texts import manifest, read

from numalign_agent.manifests.images import tag_of
from numalign_agent.manifests.scalars import spelled


def test_requests_come_from_limits() -> None:
    pod = read(manifest(container={"resources": {"limits": {"cpu": 2, "memory": "1Gi"}}}))

    resources = pod.spec["containers"][0]["resources"]
    assert resources["requests"] == {"cpu": "2", "memory": "1Gi"}


def test_requests_of_the_pod_come_from_its_containers() -> None:
    pod = read(
        manifest(
            spec={"resources": {"limits": {"cpu": "4", "memory": "1Gi"}}},
            container={"resources": {"requests": {"cpu": "1500m"}}},
        )
    )

    assert pod.spec["resources"]["requests"] == {"cpu": "1500m", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("volume", "filled"),
    [
        pytest.param({}, {"emptyDir": {}}, id="nothing-is-an-empty-directory"),
        pytest.param(
            {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.uid"}}]}},
            {
                "downwardAPI": {
                    "defaultMode": 420,
                    "items": [
                        {"path": "p", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.uid"}}
                    ],
                }
            },
            id="downward",
        ),
        pytest.param(
            {"image": {"reference": "x:1"}},
            {"image": {"reference": "x:1", "pullPolicy": "IfNotPresent"}},
            id="image",
        ),
        pytest.param(
            {"iscsi": {"targetPortal": "t", "iqn": "q", "lun": 1}},
            {"iscsi": {"targetPortal": "t", "iqn": "q", "lun": 1, "iscsiInterface": "default"}},
            id="iscsi",
        ),
    ],
)
def test_volumes(volume: Any, filled: Any) -> None:
    pod = read(manifest(spec={"volumes": [{"name": "v", **volume}]}))

    assert pod.spec["volumes"] == [{"name": "v", **filled}]


def test_hooks_and_probes() -> None:
    pod = read(
        manifest(
            container={
                "startupProbe": {"grpc": {"port": 9}, "failureThreshold": 30},
                "lifecycle": {"postStart": {"httpGet": {"port": "http"}}},
            }
        )
    )

    container = pod.spec["containers"][0]
    assert container["startupProbe"] == {
        "grpc": {"port": 9, "service": ""},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 30,
    }
    assert container["lifecycle"]["postStart"]["httpGet"] == {
        "port": "http",
        "path": "/",
        "scheme": "HTTP",
    }


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("nginx", "latest"),
        ("nginx:1.27", "1.27"),
        ("host:5000/nginx", "latest"),
        ("host:5000/nginx:x", "x"),
        ("nginx@sha256:00", ""),
        ("nginx:latest@sha256:00", "latest"),
    ],
)
def test_the_tag_of_an_image(image: str, tag: str) -> None:
    assert tag_of(image) == tag


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("1", "1"),
        ("1.0", "1"),
        ("+01.50", "1.5"),
        ("1000m", "1000m"),
        (".5Gi", "0.5Gi"),
        ("-2", "-2"),
    ],
)
def test_the_spelling_of_a_quantity(text: str, result: str) -> None:
    assert spelled(text) == result
