"""What the pods of a node take, and what the node has, in whole numbers (PRED-3 to PRED-7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from numalign.admission.handlers.admit_pod import AdmitPod, ContainerStatus, HostPort
from numalign.model.feature_gates import FeatureGates
from numalign.model.pod import Container, Pod, Resources
from numalign.model.pod_resources import is_pod_level_resource, pod_requests
from numalign.model.quantity import ZERO, Quantity
from numalign.model.resource_names import is_extended, is_hugepages

CPU, MEMORY, EPHEMERAL_STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"
PLAIN = (CPU, MEMORY, EPHEMERAL_STORAGE)
"""Resources that are always checked, in this order (PRED-8)."""

_VOLUMES = "attachable-volumes-"
_NATIVE = "kubernetes.io/"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUsage:
    """What other pods request in sum, the host ports they take, and how many they are."""

    requested: Mapping[str, int]
    host_ports: tuple[HostPort, ...]
    pods: int


@dataclass(frozen=True, slots=True)
class PodUsage:
    """What one other pod requests, and the host ports it takes."""

    requested: Mapping[str, int]
    host_ports: tuple[HostPort, ...]


def usage_of(others: Iterable[AdmitPod], gates: FeatureGates) -> NodeUsage:
    """The sum over the other pods; each pod's requests are rounded before they are added."""
    return summed(pod_usage(other, gates) for other in others)


def pod_usage(other: AdmitPod, gates: FeatureGates) -> PodUsage:
    """What another pod takes; apart from the sum because it stays the same while it lives."""
    return PodUsage(counted(pod_requests(in_force(other), gates)), other.host_ports)


def summed(usages: Iterable[PodUsage]) -> NodeUsage:
    """What pods take in sum (PRED-3)."""
    total: dict[str, int] = {}
    ports: list[HostPort] = []
    count = 0
    for usage in usages:
        for name, amount in usage.requested.items():
            total[name] = total.get(name, 0) + amount
        ports += usage.host_ports
        count += 1
    return NodeUsage(requested=total, host_ports=tuple(ports), pods=count)


def is_scalar(name: str) -> bool:
    """Whether the fit counts this resource beyond the plain ones."""
    return is_extended(name) or is_hugepages(name) or name.startswith(_VOLUMES) or _NATIVE in name


def counted(amounts: Mapping[str, Quantity]) -> dict[str, int]:
    """Amounts as whole numbers, rounded up: CPU in thousandths; what never counts is left out."""
    return {
        name: whole(name, quantity)
        for name, quantity in amounts.items()
        if name in PLAIN or is_scalar(name)
    }


def whole(name: str, quantity: Quantity) -> int:
    """One amount as a whole number (PRED-3)."""
    return quantity.milli_value() if name == CPU else quantity.value()


def without_unknown(pod: Pod, known: Mapping[str, object]) -> Pod:
    """The pod without requests for extended resources that the node does not name (PRED-5).

    Requests that a dynamic-resource claim backs go, too. Pod level and overhead stay.
    """

    def kept(container: Container) -> Container:
        requests = {
            name: quantity
            for name, quantity in container.resources.requests.items()
            if not is_extended(name)
            or (name in known and (container.name, name) not in pod.claimed_resources)
        }
        if len(requests) == len(container.resources.requests):
            return container
        return replace(container, resources=replace(container.resources, requests=requests))

    return replace(
        pod,
        containers=tuple(map(kept, pod.containers)),
        init_containers=tuple(map(kept, pod.init_containers)),
    )


def in_force(other: AdmitPod) -> Pod:
    """Another pod with the most of what was specified, allocated and actuated (PRED-7)."""
    status = other.status
    if not status.containers and status.pod_actuated is None:
        return other.pod

    def raised(container: Container) -> Container:
        own = status.containers.get(container.name)
        if own is None or own.actuated is None or container.is_regular_init:
            return container
        requests = _greatest(container.resources.requests, own, status.infeasible)
        return replace(container, resources=replace(container.resources, requests=requests))

    pod = other.pod
    return replace(
        pod,
        containers=tuple(map(raised, pod.containers)),
        init_containers=tuple(map(raised, pod.init_containers)),
        resources=_pod_level(other),
    )


def _pod_level(other: AdmitPod) -> Resources | None:
    """The pod-level section in force: only what the spec names, with 0 for what nobody names."""
    section, status = other.pod.resources, other.status
    if section is None or status.pod_actuated is None:
        return section
    most = _greatest(
        section.requests,
        ContainerStatus(actuated=status.pod_actuated, allocated=status.pod_allocated),
        status.infeasible,
    )
    requests = {
        name: most.get(name, ZERO) if is_pod_level_resource(name) else quantity
        for name, quantity in section.requests.items()
    }
    return replace(section, requests=requests)


def _greatest(
    spec: Mapping[str, Quantity], status: ContainerStatus, infeasible: bool
) -> dict[str, Quantity]:
    most: dict[str, Quantity] = {} if infeasible else dict(spec)
    for amounts in (status.actuated or {}, status.allocated):
        for name, quantity in amounts.items():
            if name not in most or quantity > most[name]:
                most[name] = quantity
    return most
