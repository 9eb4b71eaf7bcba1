"""Objects of an API server that a static pod must not need (CFG-8).

Separate from validation: such a pod is valid, and would wait for ever where no server is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Document = dict[str, Any]

_SECRET_KEYS = frozenset(
    {
        "secret",
        "secretRef",
        "secretKeyRef",
        "imagePullSecrets",
        "nodePublishSecretRef",
        "azureFile",
    }
)
_CONFIG_MAP_KEYS = frozenset({"configMap", "configMapRef", "configMapKeyRef"})

_IN_VOLUMES = (
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
)
_IN_PROJECTIONS = (
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
)


def forbidden_reference(document: Document) -> str | None:
    """What the pod refers to that it must not, by the kubelet's name; None if nothing."""
    spec = document["spec"]
    if spec.get("serviceAccountName"):
        return "serviceaccounts"
    if _names_any(spec, _SECRET_KEYS):
        return "secrets"
    if _names_any(spec, _CONFIG_MAP_KEYS):
        return "configmaps"
    if spec.get("resourceClaims"):
        return "resourceclaims"
    return next(_in_volumes(spec), None)


def _in_volumes(spec: Document) -> Iterator[str]:
    for volume in spec.get("volumes", ()):
        yield from (what for key, what in _IN_VOLUMES if key in volume)
        for source in volume.get("projected", {}).get("sources", ()):
            yield from (what for key, what in _IN_PROJECTIONS if key in source)


def _names_any(value: object, keys: frozenset[str]) -> bool:
    """Whether one of the keys stands, with something in it, anywhere in what the pod wants."""
    if isinstance(value, dict):
        return any(
            (key in keys and bool(inner)) or (key not in _FREE_KEYS and _names_any(inner, keys))
            for key, inner in value.items()
        )
    if isinstance(value, list):
        return any(_names_any(item, keys) for item in value)
    return False


_FREE_KEYS = frozenset(
    {
        "nodeSelector",
        "labels",
        "annotations",
        "matchLabels",
        "options",
        "volumeAttributes",
        "limits",
        "requests",
        "overhead",
    }
)
"""Mappings whose keys are the user's own words."""
