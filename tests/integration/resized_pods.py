"""Pods that grow and shrink, and the requests that ask for it."""

from __future__ import annotations

from typing import Any

from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_json import node_from_json, pod_from_json
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

CRITICAL = 2_000_000_000

_LIMITS = {"cpu": "32", "memory": "64Gi"}


def burstable(
    name: str,
    cpu: str = "1",
    memory: str = "1Gi",
    *,
    actuated: str | None = None,
    **spec: Any,
) -> core_pb2.Pod:
    """A Burstable pod; `actuated` is the CPU that its status says its container has."""
    return _pod(name, {"cpu": cpu, "memory": memory}, _LIMITS, actuated, spec)


def guaranteed(name: str, cpu: str = "1", memory: str = "1Gi", **spec: Any) -> core_pb2.Pod:
    """A Guaranteed pod, which holds CPUs and memory of its own."""
    amounts = {"cpu": cpu, "memory": memory}
    return _pod(name, amounts, amounts, None, spec)


def node_object(cpu: str = "8", pods: str = "10", **labels: str) -> core_pb2.Node:
    """A Node object with so many CPUs."""
    return node_from_json(
        {
            "kind": "Node",
            "metadata": {"name": "node-1", "labels": {"kubernetes.io/os": "linux"} | labels},
            "status": {"allocatable": {"cpu": cpu, "memory": "31Gi", "pods": pods}},
        }
    )


def addition(pod: core_pb2.Pod, **fields: Any) -> ad.AdmitRequest:
    return ad.AdmitRequest(pod=pod, operation=pb.OPERATION_ADD, **fields)


def resize(pod: core_pb2.Pod, **fields: Any) -> ad.AdmitRequest:
    return ad.AdmitRequest(pod=pod, operation=pb.OPERATION_RESIZE, **fields)


def cpu_of(resources: pb.PodResources) -> str:
    """The CPU request of the one container."""
    (entry,) = resources.containers
    return entry.amounts.requests["cpu"]


def _pod(
    name: str,
    requests: dict[str, str],
    limits: dict[str, str],
    actuated: str | None,
    spec: dict[str, Any],
) -> core_pb2.Pod:
    document: dict[str, Any] = {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {
            "containers": [
                {"name": "c", "image": "i", "resources": {"requests": requests, "limits": limits}}
            ],
            **spec,
        },
    }
    if actuated is not None:
        status = {"name": "c", "resources": {"requests": {"cpu": actuated}}}
        document["status"] = {"containerStatuses": [status]}
    return pod_from_json(document)
