"""Pods and nodes for the tests of admit handlers, from the JSON that a user would write."""

from __future__ import annotations

from typing import Any

from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.node_view import NodeView
from numalign.admission.pod_messages import admit_pod, node_view
from numalign.kube.pod_decode import read_pod
from numalign.kube.pod_json import node_from_json, pod_from_json


def pod(
    name: str = "p",
    *,
    requests: dict[str, str] | None = None,
    limits: dict[str, str] | None = None,
    container: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> AdmitPod:
    """A pod with one container `c`; `spec` holds further fields of the spec."""
    resources = {"requests": requests or {}, "limits": limits or {}}
    message = pod_from_json(
        {
            "metadata": {"name": name, "uid": f"uid-{name}", **(metadata or {})},
            "spec": {
                "containers": [{"name": "c", "resources": resources, **(container or {})}],
                **spec,
            },
            "status": status or {},
        }
    )
    return admit_pod(message, read_pod(message)[0])


def node(
    allocatable: dict[str, str] | None = None,
    *,
    labels: dict[str, str] | None = None,
    taints: list[dict[str, str]] | None = None,
    features: dict[str, Any] | None = None,
) -> NodeView:
    """A node `node-1`, by default with 4 CPUs, 8Gi and room for 10 pods."""
    return node_view(
        node_from_json(
            {
                "metadata": {
                    "name": "node-1",
                    "labels": {"kubernetes.io/os": "linux", **(labels or {})},
                },
                "spec": {"taints": taints or []},
                "status": {
                    "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}
                    | (allocatable or {}),
                    "features": features or {},
                },
            }
        )
    )


STATIC = {"annotations": {"kubernetes.io/config.source": "file"}}
"""Metadata of a static pod."""

CRITICAL = 2_000_000_000
"""A priority that makes a pod critical."""
