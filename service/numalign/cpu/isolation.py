"""How far a container is kept apart from others. Rules CPU-81 and CPU-87."""

from __future__ import annotations

from enum import StrEnum

from numalign.cpu.eligibility import is_equivalent_guaranteed, is_managed_pod
from numalign.cpu.state import CpuState
from numalign.model.feature_gates import FeatureGates
from numalign.model.pod import Container, Pod
from numalign.model.quantity import is_whole_cpus


class Isolation(StrEnum):
    """Whom a container shares its CPUs with: the node, its pod, or nobody."""

    HOST = "host"
    POD = "pod"
    CONTAINER = "container"


def isolation(state: CpuState, pod: Pod, container: Container, gates: FeatureGates) -> Isolation:
    """The isolation level of one container (CPU-81)."""
    if state.assignment(pod.uid, container.name) is None:
        return Isolation.HOST
    if not is_managed_pod(pod, gates):
        return Isolation.CONTAINER
    limit = container.resources.limits.get("cpu")
    alone = is_equivalent_guaranteed(container) and limit is not None and is_whole_cpus(limit)
    return Isolation.CONTAINER if alone else Isolation.POD


def container_is_unthrottled(
    state: CpuState, pod: Pod, container: Container, gates: FeatureGates
) -> bool:
    """Whether the container runs without a CPU quota (CPU-87)."""
    if not gates.disable_cpu_quota_with_exclusive_cpus:
        return False
    if gates.pod_level_resource_managers:
        return isolation(state, pod, container, gates) is Isolation.CONTAINER
    return bool(state.assignment(pod.uid, container.name))


def pod_is_unthrottled(state: CpuState, pod: Pod, gates: FeatureGates) -> bool:
    """Whether the pod as a whole runs without a CPU quota (CPU-87)."""
    if not gates.disable_cpu_quota_with_exclusive_cpus:
        return False
    containers = pod.all_containers()
    if is_managed_pod(pod, gates):
        return all(isolation(state, pod, c, gates) is Isolation.CONTAINER for c in containers)
    return any(state.assignment(pod.uid, c.name) for c in containers)
