"""What a pod asks for as a whole: containers, init phases, pod-level section and overhead.

Separate from the pod value because it is arithmetic over it, shared by hints for a pod, by
the fit of a pod on the node and by accounting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from numalign.model.feature_gates import FeatureGates
from numalign.model.pod import Container, Pod
from numalign.model.quantity import Quantity

_HUGEPAGES = "hugepages-"


def is_pod_level_resource(name: str) -> bool:
    """Whether a pod-level section may hold this resource (TM-47)."""
    return name in {"cpu", "memory"} or name.startswith(_HUGEPAGES)


def pod_level_resources_set(pod: Pod) -> bool:
    """Whether the pod counts as having pod-level resources (TM-47)."""
    section = pod.resources
    return section is not None and (
        any(map(is_pod_level_resource, section.requests))
        or any(map(is_pod_level_resource, section.limits))
    )


def containers_requests(pod: Pod) -> dict[str, Quantity]:
    """What the containers need at once at most: the greatest moment of the pod's life (PRED-6)."""
    return _greatest_moment(pod, lambda container: container.resources.requests)


def containers_limits(pod: Pod) -> dict[str, Quantity]:
    """As `containers_requests`, of the limits; what the device provider counts (DEV-22)."""
    return _greatest_moment(pod, lambda container: container.resources.limits)


def pod_requests(pod: Pod, gates: FeatureGates) -> dict[str, Quantity]:
    """Effective requests: the containers', overruled by the pod level, plus the overhead."""
    total = containers_requests(pod)
    if gates.pod_level_resources and pod.resources is not None:
        _overrule(total, pod.resources.requests)
    _add(total, pod.overhead)
    return total


def pod_limits(pod: Pod, gates: FeatureGates) -> dict[str, Quantity]:
    """Effective limits: as `pod_requests`, but overhead only raises limits that are not 0."""
    total = containers_limits(pod)
    if gates.pod_level_resources and pod.resources is not None:
        _overrule(total, pod.resources.limits)
    for name, quantity in pod.overhead.items():
        limit = total.get(name)
        if limit is not None and not limit.is_zero():
            total[name] = limit + quantity
    return total


def _greatest_moment(
    pod: Pod, amounts_of: Callable[[Container], Mapping[str, Quantity]]
) -> dict[str, Quantity]:
    """Per resource, the most that containers which run side by side add up to.

    The moments are: each init container with the sidecars started before it, and the app
    containers with all sidecars.
    """
    apps: dict[str, Quantity] = {}
    for container in pod.containers:
        _add(apps, amounts_of(container))
    init_peak: dict[str, Quantity] = {}
    sidecars: dict[str, Quantity] = {}
    for container in pod.init_containers:
        amounts = amounts_of(container)
        if container.restartable:
            _add(apps, amounts)
            _add(sidecars, amounts)
            moment = sidecars
        else:
            moment = dict(amounts)
            _add(moment, sidecars)
        _raise(init_peak, moment)
    _raise(apps, init_peak)
    return apps


def _add(total: dict[str, Quantity], amounts: Mapping[str, Quantity]) -> None:
    for name, quantity in amounts.items():
        total[name] = total[name] + quantity if name in total else quantity


def _raise(total: dict[str, Quantity], amounts: Mapping[str, Quantity]) -> None:
    for name, quantity in amounts.items():
        if name not in total or quantity > total[name]:
            total[name] = quantity


def _overrule(total: dict[str, Quantity], amounts: Mapping[str, Quantity]) -> None:
    total.update(
        {name: quantity for name, quantity in amounts.items() if is_pod_level_resource(name)}
    )
