"""Pod-level resources: one booking for the pod, shared out among its containers.

How the pool of the pod is divided, and when a container without memory of its own would be
left with nothing. What is booked on the nodes does not depend on any of this.
"""

from __future__ import annotations

from collections.abc import Mapping

from numalign.memory.booking import make_blocks
from numalign.memory.eligibility import Request, container_request
from numalign.memory.machine_state import UINT64
from numalign.memory.state import Blocks
from numalign.model.feature_gates import FeatureGates
from numalign.model.numa_mask import NumaMask
from numalign.model.pod import Pod

EMPTY_SHARED_POOL = "EmptyPodSharedPoolError"
"""Reason of a pod whose shared containers would have no memory (MEM-59)."""


def container_requests(pod: Pod, gates: FeatureGates) -> Mapping[str, Request] | None:
    """What each container asks for as its own, by name; None where a value is no integer."""
    requests: dict[str, Request] = {}
    for container in pod.all_containers():
        request = container_request(pod, container, gates)
        if request is None:
            return None
        requests[container.name] = request
    return requests


def empty_shared_pool(
    pod: Pod, pod_request: Request, requests: Mapping[str, Request]
) -> str | None:
    """Why a container that shares the pod's memory would have none of it, or None (MEM-62)."""
    for resource, budget in pod_request.items():
        problem = _check_resource(pod, resource, budget, requests)
        if problem is not None:
            return problem
    return None


def divide(
    pod: Pod, pod_request: Request, requests: Mapping[str, Request], mask: NumaMask
) -> Mapping[str, Blocks]:
    """The blocks of each container, all over `mask` (MEM-60).

    A container without memory of its own gets the blocks of the pool it shares: a regular init
    container what the sidecars before it leave, any other what is left of the whole pod.
    Amounts wrap as the kubelet's do (MEM-T22).
    """
    pool = dict(pod_request)
    own: dict[str, Blocks] = {}
    for container in pod.init_containers:
        request = requests[container.name]
        if request:
            own[container.name] = _positive_blocks(mask, request)
            if container.restartable:
                _deduct(pool, request)
        elif not container.restartable:
            own[container.name] = _positive_blocks(mask, pool)
    for container in pod.containers:
        request = requests[container.name]
        if request:
            own[container.name] = _positive_blocks(mask, request)
            _deduct(pool, request)
    shared = _positive_blocks(mask, pool)
    return {container.name: own.get(container.name) or shared for container in pod.all_containers()}


def _check_resource(
    pod: Pod, resource: str, budget: int, requests: Mapping[str, Request]
) -> str | None:
    long_running = 0
    shared_present = False
    for container in pod.init_containers:
        request = requests[container.name]
        if request and container.restartable:
            long_running = long_running + request.get(resource, 0) & UINT64
        elif not request and container.restartable:
            shared_present = True
        elif not request and long_running >= budget:
            return (
                f"pod rejected, pod has shared init containers but no {resource} available for them"
            )
    for container in pod.containers:
        request = requests[container.name]
        if request:
            long_running = long_running + request.get(resource, 0) & UINT64
        else:
            shared_present = True
    if shared_present and long_running >= budget:
        return (
            f"pod rejected, sum of exclusive container {resource} requests equals pod budget, "
            "leaving no memory for shared containers"
        )
    return None


def _positive_blocks(mask: NumaMask, amounts: Request) -> Blocks:
    return make_blocks(mask, {name: size for name, size in sorted(amounts.items()) if size})


def _deduct(pool: dict[str, int], amounts: Request) -> None:
    for resource, amount in amounts.items():
        pool[resource] = pool.get(resource, 0) - amount & UINT64
