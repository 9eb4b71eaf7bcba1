"""What a static pod must not need from an API server (CFG-8)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.agent.manifests.texts import manifest, read

from numalign_agent.manifests.errors import ManifestError


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        pytest.param(
            {"resourceClaims": [{"name": "a", "resourceClaimName": "b"}]},
            "resourceclaims",
            id="claims",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "csi": {"driver": "d"}}]},
            "csidrivers (via CSI volumes)",
            id="csi",
        ),
        pytest.param(
            {
                "volumes": [
                    {"name": "v", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "s"}}}
                ]
            },
            "secrets",
            id="csi-secret",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "glusterfs": {"endpoints": "e", "path": "p"}}]},
            "endpoints (via glusterFS volumes)",
            id="glusterfs",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]},
            "persistentvolumeclaims (via ephemeral volumes)",
            id="ephemeral",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}]},
            "secrets",
            id="projected-secret",
        ),
        pytest.param(
            {
                "volumes": [
                    {"name": "v", "projected": {"sources": [{"podCertificate": {"keyType": "b"}}]}}
                ]
            },
            "podcertificates",
            id="certificate",
        ),
        pytest.param(
            {
                "initContainers": [
                    {"name": "i", "image": "x", "envFrom": [{"configMapRef": {"name": "m"}}]}
                ]
            },
            "configmaps",
            id="init-container",
        ),
    ],
)
def test_references(spec: Any, what: str) -> None:
    with pytest.raises(ManifestError) as refused:
        read(manifest(spec=spec))

    assert str(refused.value) == f"static pods may not reference {what}"


def test_words_of_the_user_are_no_references() -> None:
    pod = read(manifest(spec={"nodeSelector": {"secret": "yes", "configMap": "no"}}))

    assert pod.spec["nodeSelector"] == {"secret": "yes", "configMap": "no"}
