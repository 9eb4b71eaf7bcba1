"""How much a container, or a pod as a whole, asks for."""

from __future__ import annotations

from collections.abc import Iterable

from numalign.errors import FieldViolation
from numalign.kube.core.v1 import core_pb2
from numalign.kube.resource_values import read_amounts

_SIDECAR = "Always"


def requested(container: core_pb2.Container, resource: str) -> int:
    """What the container requests of a resource, in whole units rounded up; 0 if nothing.

    Without a request, its limit counts, as the API server has it. Raises ValueError for an
    amount that is none.
    """
    resources = container.resources
    for amounts in (resources.requests, resources.limits):
        if resource in amounts:
            violations: list[FieldViolation] = []
            read = read_amounts({resource: amounts[resource]}, "resources", "", violations)
            if violations:
                raise ValueError(f"{violations[0].field}: {violations[0].description}")
            return read[resource].value()
    return 0


def whole_pod(pod: core_pb2.Pod, resources: Iterable[str]) -> core_pb2.Container:
    """A container without a name that asks for what the pod needs at its peak.

    Init containers run one after the other beside the sidecars started before them, app
    containers beside all sidecars. Of a resource `prefix*` every name that the pod uses counts.
    """
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    names = {
        name
        for container in containers
        for amounts in (container.resources.requests, container.resources.limits)
        for name in amounts
        if any(_serves(resource, name) for resource in resources)
    }
    whole = core_pb2.Container()
    for name in sorted(names):
        amount = _peak(pod, name)
        if amount:
            whole.resources.requests[name].string = str(amount)
            whole.resources.limits[name].string = str(amount)
    return whole


def _serves(resource: str, name: str) -> bool:
    return name.startswith(resource[:-1]) if resource.endswith("*") else name == resource


def _peak(pod: core_pb2.Pod, resource: str) -> int:
    sidecars = peak = 0
    for container in pod.spec.init_containers:
        amount = requested(container, resource)
        peak = max(peak, sidecars + amount)
        if container.restart_policy == _SIDECAR:
            sidecars += amount
    together = sum(requested(container, resource) for container in pod.spec.containers)
    return max(peak, sidecars + together)
