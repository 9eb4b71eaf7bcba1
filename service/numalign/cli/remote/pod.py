"""Which pod of a node to speak through, and what to run in it. Pure.

Separate from kubectl, which lists the pods: this one knows only how numalign is installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from numalign.errors import Unavailable

SELECTOR = "app.kubernetes.io/name=numalign"
"""The label of the pods that run the services."""

NAMESPACE = "numalign-system"
"""Where they are by default."""

_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePod:
    """A container of a numalign pod. `place` are the options that its command finds sockets by."""

    node: str
    namespace: str
    name: str
    container: str
    place: tuple[str, ...]

    def __str__(self) -> str:
        return f"pod {self.namespace}/{self.name} on node {self.node}"


def pod_of_node(pods: Sequence[Mapping[str, Any]], node: str, namespace: str) -> RemotePod | None:
    """The pod to speak through, None where there is none. Raises Unavailable where none runs."""
    staying = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    if not staying:
        return None
    running = [pod for pod in staying if pod.get("status", {}).get("phase") == "Running"]
    if not running:
        status = staying[-1].get("status", {})
        why = status.get("message") or status.get("reason") or status.get("phase") or "new"
        name = staying[-1]["metadata"]["name"]
        raise Unavailable(
            f"node {node}: pod {namespace}/{name} does not run ({why}): "
            f"`kubectl describe pod -n {namespace} {name}` says more"
        )
    pod = max(running, key=lambda pod: (_is_ready(pod), pod["metadata"]["creationTimestamp"]))
    container = _container(pod)
    return RemotePod(
        node=node,
        namespace=namespace,
        name=pod["metadata"]["name"],
        container=container["name"],
        place=_place(container),
    )


def _is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _container(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """The one that the pod names, else the one that serves Admission, else the first."""
    containers: list[Mapping[str, Any]] = pod["spec"]["containers"]
    named = (pod["metadata"].get("annotations") or {}).get(_DEFAULT_CONTAINER)
    for container in containers:
        if container["name"] == named:
            return container
    for container in containers:
        if (container.get("args") or ())[:2] in (["serve", "admission"], ["serve", "all"]):
            return container
    return containers[0]


def _place(container: Mapping[str, Any]) -> tuple[str, ...]:
    """`--config FILE` as the services in the container were given it."""
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    for word in words:
        if word.startswith("--config="):
            return ("--config", word.removeprefix("--config="))
    return next((pair for pair in pairwise(words) if pair[0] == "--config"), ())
