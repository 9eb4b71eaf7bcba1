"""Where objects are found on an API server."""

from __future__ import annotations

from urllib.parse import quote

PODS = "/api/v1/pods"
NODES = "/api/v1/nodes"
TOPOLOGIES = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
RESOURCE_SLICES = "/apis/resource.k8s.io/v1/resourceslices"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def pods_in(namespace: str) -> str:
    """All pods of a namespace."""
    return f"/api/v1/namespaces/{_part(namespace)}/pods"


def pod(namespace: str, name: str) -> str:
    """One pod."""
    return f"{pods_in(namespace)}/{_part(name)}"


def pod_status(namespace: str, name: str) -> str:
    """The status of one pod."""
    return f"{pod(namespace, name)}/status"


def events_in(namespace: str) -> str:
    """All events of a namespace."""
    return f"/api/v1/namespaces/{_part(namespace)}/events"


def event(namespace: str, name: str) -> str:
    """One event."""
    return f"{events_in(namespace)}/{_part(name)}"


def node(name: str) -> str:
    """One node."""
    return f"{NODES}/{_part(name)}"


def node_status(name: str) -> str:
    """The status of one node."""
    return f"{node(name)}/status"


def topology(name: str) -> str:
    """The NodeResourceTopology of one node."""
    return f"{TOPOLOGIES}/{_part(name)}"


def lease(name: str) -> str:
    """The lease of one node."""
    return f"{LEASES}/{_part(name)}"


def resource_slice(name: str) -> str:
    """One resource slice."""
    return f"{RESOURCE_SLICES}/{_part(name)}"


def resource_claim(namespace: str, name: str) -> str:
    """One resource claim."""
    return f"/apis/resource.k8s.io/v1/namespaces/{_part(namespace)}/resourceclaims/{_part(name)}"


def _part(text: str) -> str:
    return quote(text, safe="")
