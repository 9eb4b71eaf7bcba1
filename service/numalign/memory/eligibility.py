"""Which pods memory is placed for, and how many bytes a container or a whole pod asks for.

The first question of every decision; it reads the pod alone, never the machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TypeAlias

from numalign.memory.machine_state import MEMORY, UINT64, is_managed
from numalign.model.feature_gates import FeatureGates
from numalign.model.pod import Container, Pod
from numalign.model.pod_resources import pod_level_resources_set
from numalign.model.quantity import ZERO, Quantity

CPU = "cpu"
NOT_AN_INTEGER = "[memorymanager] failed to represent quantity as int64"

Request: TypeAlias = Mapping[str, int]
"""Bytes asked for, by managed resource in order of name; zero values are kept (MEM-18)."""


class PodLevel(Enum):
    """How the pod's own `resources` section counts: there is none, it is managed, or it bars.

    BARRED: the section is set while a gate that pod-level management needs is off; then
    memory is not placed at all (MEM-20).
    """

    ABSENT = "absent"
    MANAGED = "managed"
    BARRED = "barred"


def pod_level(pod: Pod, gates: FeatureGates) -> PodLevel:
    """How the pod-level section of `pod` counts (MEM-19..MEM-21)."""
    if not pod_level_resources_set(pod):
        return PodLevel.ABSENT
    if gates.pod_level_resources and gates.pod_level_resource_managers:
        return PodLevel.MANAGED
    return PodLevel.BARRED


def has_exclusive_memory(container: Container) -> bool:
    """Whether a container of a managed pod gets memory of its own, apart from the pod's pool."""
    requests, limits = container.resources.requests, container.resources.limits
    for resource in (CPU, MEMORY):
        request = requests.get(resource, ZERO)
        if request.is_zero() or request != limits.get(resource, ZERO):
            return False
    return True


def container_request(pod: Pod, container: Container, gates: FeatureGates) -> Request | None:
    """The bytes `container` asks for (MEM-18, MEM-19); None where a value is no integer."""
    if pod_level(pod, gates) is PodLevel.MANAGED and not has_exclusive_memory(container):
        return {}
    return _managed_amounts(container.resources.requests)


def pod_request(pod: Pod, gates: FeatureGates) -> Request | None:
    """The bytes the whole pod asks for (MEM-21, MEM-22); None where a value is no integer."""
    if pod_level(pod, gates) is PodLevel.MANAGED and pod.resources is not None:
        amounts = _managed_amounts(pod.resources.requests)
        if amounts is None:
            return None
        return {resource: amount for resource, amount in amounts.items() if amount}
    return _sum_of_containers(pod)


def _managed_amounts(requests: Mapping[str, Quantity]) -> Request | None:
    amounts: dict[str, int] = {}
    for resource in sorted(filter(is_managed, requests)):
        amount = requests[resource].as_int64()
        if amount is None:
            return None
        amounts[resource] = amount & UINT64
    return amounts


def _sum_of_containers(pod: Pod) -> Request | None:
    """The larger of what runs together at the end and of each init step (MEM-22)."""
    sidecars: dict[str, int] = {}
    init_peak: dict[str, int] = {}
    for container in pod.init_containers:
        own = _managed_amounts(container.resources.requests)
        if own is None:
            return None
        if container.restartable:
            _add(sidecars, own)
            continue
        for resource, amount in own.items():
            step = sidecars.get(resource, 0) + amount & UINT64
            init_peak[resource] = max(init_peak.get(resource, 0), step)
    apps = _sum_of_apps(pod.containers)
    if apps is None:
        return None
    return {
        resource: max(amount + sidecars.get(resource, 0) & UINT64, init_peak.get(resource, 0))
        for resource, amount in sorted(apps.items())
    }


def _sum_of_apps(containers: Iterable[Container]) -> dict[str, int] | None:
    apps: dict[str, int] = {}
    for container in containers:
        own = _managed_amounts(container.resources.requests)
        if own is None:
            return None
        _add(apps, own)
    return apps


def _add(sums: dict[str, int], amounts: Request) -> None:
    for resource, amount in amounts.items():
        sums[resource] = sums.get(resource, 0) + amount & UINT64
