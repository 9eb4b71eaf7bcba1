"""Who gets exclusive CPUs, and how many. Rules CPU-35..CPU-37 and CPU-77."""

from __future__ import annotations

from numalign.model.feature_gates import FeatureGates
from numalign.model.pod import Container, Pod
from numalign.model.pod_resources import pod_level_resources_set
from numalign.model.qos import is_guaranteed
from numalign.model.quantity import Quantity, is_whole_cpus

SHARED_INIT_WITHOUT_CPUS = (
    "pod rejected, pod has shared init containers but no cpus available for them"
)
NO_CPUS_FOR_SHARED = (
    "pod rejected, sum of exclusive container cpu requests equals pod budget, "
    "leaving no cpus for shared containers"
)


def is_managed_pod(pod: Pod, gates: FeatureGates) -> bool:
    """Whether the pod has resources of its own and these are managed as a whole."""
    return gates.pod_level_resource_managers and pod_level_resources_set(pod)


def is_left_alone(pod: Pod, gates: FeatureGates) -> bool:
    """Whether the pod has resources of its own that this node does not manage (CPU-37)."""
    managed = gates.pod_level_resource_managers and gates.pod_level_resources
    return not managed and pod_level_resources_set(pod)


def container_count(pod: Pod, container: Container, gates: FeatureGates) -> int:
    """How many exclusive CPUs one container gets (CPU-35)."""
    if not is_guaranteed(pod, gates):
        return 0
    return _count(container, whole_pod=is_managed_pod(pod, gates))


def container_counts(pod: Pod, gates: FeatureGates) -> dict[str, int]:
    """How many exclusive CPUs each container gets, in order of decision (CPU-35)."""
    if not is_guaranteed(pod, gates):
        return {container.name: 0 for container in pod.all_containers()}
    whole_pod = is_managed_pod(pod, gates)
    return {c.name: _count(c, whole_pod=whole_pod) for c in pod.all_containers()}


def pod_count(pod: Pod, gates: FeatureGates) -> int:
    """How many exclusive CPUs the pod gets as a whole (CPU-36)."""
    if is_managed_pod(pod, gates) and pod.resources is not None:
        if not is_guaranteed(pod, gates):
            return 0
        return _whole_cpus(pod.resources.requests.get("cpu"))
    counts = container_counts(pod, gates)
    sidecars = 0
    init_peak = 0
    for container in pod.init_containers:
        if container.restartable:
            sidecars += counts[container.name]
        else:
            init_peak = max(init_peak, sidecars + counts[container.name])
    apps = sum(counts[container.name] for container in pod.containers)
    return max(init_peak, apps + sidecars)


def empty_pool(pod: Pod, budget: int, gates: FeatureGates) -> str | None:
    """Why containers without exclusive CPUs would have none left of `budget` (CPU-77).

    None if there is something for everybody.
    """
    counts = container_counts(pod, gates)
    lasting = 0
    shared = False
    for container in pod.all_containers():
        count = counts[container.name]
        if container.is_regular_init:
            if count == 0 and lasting >= budget:
                return SHARED_INIT_WITHOUT_CPUS
        elif count == 0:
            shared = True
        else:
            lasting += count
    return NO_CPUS_FOR_SHARED if shared and lasting >= budget else None


def is_equivalent_guaranteed(container: Container) -> bool:
    """Whether cpu and memory are requested and limited alike, and not zero (the terms)."""
    requests, limits = container.resources.requests, container.resources.limits
    for name in ("cpu", "memory"):
        request = requests.get(name)
        if request is None or request.is_zero() or request != limits.get(name):
            return False
    return True


def _count(container: Container, *, whole_pod: bool) -> int:
    if whole_pod and not is_equivalent_guaranteed(container):
        return 0
    return _whole_cpus(container.resources.requests.get("cpu"))


def _whole_cpus(request: Quantity | None) -> int:
    if request is None or not is_whole_cpus(request):
        return 0
    return request.value()
