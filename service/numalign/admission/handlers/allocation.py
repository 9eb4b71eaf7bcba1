"""What a pod was admitted with: taking it down, and showing the pod with it (ALLOC-5, ALLOC-6).

Separate from keeping it: these are the rules on a single pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.kubelet_files.allocation_checkpoint import (
    AllocatedResources,
    ClaimReference,
    PodAllocation,
)
from numalign.model.feature_gates import FeatureGates
from numalign.model.pod import Container, Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeGates:
    """Feature gates of in-place resize, with the v1.36 defaults (RSZ-2 to RSZ-5)."""

    in_place: bool = True
    init_containers: bool = True
    pod_level: bool = True
    exclusive_cpus: bool = False
    exclusive_memory: bool = False


def resize_gates(gates: FeatureGates) -> ResizeGates:
    """The gates of in-place resize among all gates."""
    return ResizeGates(
        in_place=gates.in_place_pod_vertical_scaling,
        init_containers=gates.in_place_pod_vertical_scaling_init_containers,
        pod_level=gates.in_place_pod_level_resources_vertical_scaling,
        exclusive_cpus=gates.in_place_pod_vertical_scaling_exclusive_cpus,
        exclusive_memory=gates.in_place_pod_vertical_scaling_exclusive_memory,
    )


def allocation_of(pod: AdmitPod, gates: ResizeGates) -> PodAllocation:
    """What is recorded of a pod that is admitted as it stands (ALLOC-5)."""
    section = pod.pod_level
    return PodAllocation(
        containers={
            container.name: section_of(pod, container)
            for container in pod.pod.all_containers()
            if is_resizable(container, gates)
        },
        pod_level=AllocatedResources(limits=section.limits, requests=section.requests)
        if section is not None and gates.pod_level
        else None,
    )


def overlaid(
    pod: AdmitPod, allocation: PodAllocation | None, gates: ResizeGates
) -> tuple[AdmitPod, bool]:
    """The pod with the resources it was admitted with, and whether anything differed (ALLOC-6).

    Without an entry the pod stands for itself.
    """
    if allocation is None:
        return pod, False
    claims = dict(pod.claims)

    def shown(container: Container) -> Container:
        entry = allocation.containers.get(container.name)
        if (
            entry is None
            or not is_resizable(container, gates)
            or entry == section_of(pod, container)
        ):
            return container
        claims[container.name] = entry.claims
        return replace(container, resources=Resources(requests=entry.requests, limits=entry.limits))

    before = pod.pod
    after = replace(
        before,
        init_containers=tuple(map(shown, before.init_containers)),
        containers=tuple(map(shown, before.containers)),
    )
    if gates.pod_level:
        entry = allocation.pod_level
        after = replace(
            after,
            resources=None
            if entry is None
            else Resources(requests=entry.requests, limits=entry.limits),
        )
    if after == before and claims == pod.claims:
        return pod, False
    return replace(pod, pod=after, claims=claims), True


def is_resizable(container: Container, gates: ResizeGates) -> bool:
    """Whether the resources of a container can change while the pod lives (ALLOC-5)."""
    return not container.is_regular_init or gates.init_containers


def section_of(pod: AdmitPod, container: Container) -> AllocatedResources:
    """The whole resources section of a container."""
    resources = container.resources
    claims: Mapping[str, tuple[ClaimReference, ...]] = pod.claims
    return AllocatedResources(
        limits=resources.limits,
        requests=resources.requests,
        claims=claims.get(container.name, ()),
    )
