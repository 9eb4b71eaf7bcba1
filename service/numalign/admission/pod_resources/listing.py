"""Which pods and containers the pod resources interface shows (PR-4, PR-5, PR-6, PR-13).

Pure functions; where pods come from and how they are told is elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable

from numalign.admission.pod_resources.values import Kind, ListedPod


def shown_containers(pod: ListedPod) -> tuple[str, ...]:
    """Sidecars in init order, then app containers, also those that hold nothing (PR-5)."""
    return _named(pod, Kind.SIDECAR) + _named(pod, Kind.APP)


def app_containers(pod: ListedPod) -> tuple[str, ...]:
    """App containers alone, as v1alpha1 shows them (PR-13)."""
    return _named(pod, Kind.APP)


def find_pod(pods: Iterable[ListedPod], namespace: str, name: str) -> ListedPod | None:
    """The pod of that name, None if there is none (PR-6)."""
    for pod in pods:
        if pod.name == name and pod.namespace == namespace:
            return pod
    return None


def not_found(namespace: str, name: str) -> str:
    """The kubelet's text for a pod that there is not (PR-6)."""
    return f"pod {name} in namespace {namespace} not found"


def _named(pod: ListedPod, kind: Kind) -> tuple[str, ...]:
    return tuple(container.name for container in pod.containers if container.kind is kind)
