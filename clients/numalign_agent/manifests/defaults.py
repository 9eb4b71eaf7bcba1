"""What the API server would fill in, type by type.

Separate from decoding: these are values that Kubernetes chose, and most of them are one table.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from numalign.kube.pod_defaults import apply_defaults
from numalign.kube.pod_json import pod_from_json, pod_to_json
from numalign_agent.manifests.images import tag_of
from numalign_agent.manifests.schema import fields_of

Document = dict[str, Any]

_MODE = 0o644

_DEFAULTS: Mapping[str, Document] = {
    "PodSpec": {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "enableServiceLinks": True,
    },
    "Container": {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    },
    "ContainerPort": {"protocol": "TCP"},
    "Probe": {
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    },
    "HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "GRPCAction": {"service": ""},
    "ObjectFieldSelector": {"apiVersion": "v1"},
    "ResourceFieldSelector": {"divisor": "0"},
    "FileKeySelector": {"optional": False},
    "HostPathVolumeSource": {"type": ""},
    "SecretVolumeSource": {"defaultMode": _MODE},
    "ConfigMapVolumeSource": {"defaultMode": _MODE},
    "DownwardAPIVolumeSource": {"defaultMode": _MODE},
    "ProjectedVolumeSource": {"defaultMode": _MODE},
    "ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "ISCSIVolumeSource": {"iscsiInterface": "default"},
    "RBDVolumeSource": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "AzureDiskVolumeSource": {
        "cachingMode": "ReadWrite",
        "kind": "Shared",
        "fsType": "ext4",
        "readOnly": False,
    },
    "ScaleIOVolumeSource": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}


def with_defaults(document: Document) -> Document:
    """A copy of a decoded pod with what was not said filled in."""
    filled = copy.deepcopy(document)
    spec = filled.setdefault("spec", {})
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:  # two names of one field
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    _fill(filled, "Pod")
    _fill_host_ports(spec)
    _fill_resources(filled)
    return filled


def _fill(document: Document, object_type: str) -> None:
    rule = _RULES.get(object_type)
    if rule is not None:
        rule(document)
    for name, value in _DEFAULTS.get(object_type, {}).items():
        document.setdefault(name, copy.deepcopy(value))
    for name, field in fields_of(object_type).items():
        if field.scalar is not None or name not in document:
            continue
        value = document[name]
        inner = value if field.is_list else value.values() if field.is_map else [value]
        for item in inner:
            _fill(item, field.object_type)


def _fill_container(container: Document) -> None:
    container.setdefault("imagePullPolicy", _pull_policy(container.get("image", "")))


def _fill_ephemeral(container: Document) -> None:
    _fill_container(container)
    for name, value in _DEFAULTS["Container"].items():
        container.setdefault(name, value)


def _fill_volume(volume: Document) -> None:
    if not volume.keys() - {"name"}:
        volume["emptyDir"] = {}


def _fill_image_volume(source: Document) -> None:
    source.setdefault("pullPolicy", _pull_policy(source.get("reference", "")))


_RULES: Mapping[str, Callable[[Document], None]] = {
    "Container": _fill_container,
    "EphemeralContainer": _fill_ephemeral,
    "Volume": _fill_volume,
    "ImageVolumeSource": _fill_image_volume,
}


def _pull_policy(image: str) -> str:
    return "Always" if tag_of(image) == "latest" else "IfNotPresent"


def _containers(spec: Document) -> list[Document]:
    return [*spec.get("initContainers", ()), *spec.get("containers", ())]


def _fill_host_ports(spec: Document) -> None:
    if spec.get("hostNetwork"):
        for container in _containers(spec):
            for port in container.get("ports", ()):
                if "containerPort" in port:
                    port.setdefault("hostPort", port["containerPort"])


def _fill_resources(document: Document) -> None:
    """Requests from limits, for each container and for the pod, by the services' own rules."""
    spec = document["spec"]
    sections = [owner["resources"] for owner in (*_containers(spec), spec) if "resources" in owner]
    if not any(section.get("limits") or section.get("requests") for section in sections):
        return
    message = pod_from_json({"spec": {key: spec[key] for key in _RESOURCE_PARTS if key in spec}})
    apply_defaults(message)
    filled = pod_to_json(message)["spec"]
    for mine, theirs in zip(_containers(spec), _containers(filled), strict=True):
        _take_amounts(mine, theirs)
    _take_amounts(spec, filled)


_RESOURCE_PARTS = ("containers", "initContainers", "resources")


def _take_amounts(mine: Document, theirs: Document) -> None:
    for kind in ("limits", "requests"):
        for name, amount in theirs.get("resources", {}).get(kind, {}).items():
            mine["resources"].setdefault(kind, {}).setdefault(name, amount)
