"""The numbers that section 10 counts, as plain values: what one allocation adds to each.

Pure, so that the engine stays free of counters; whoever serves the metrics adds them up.
"""

from __future__ import annotations

from dataclasses import dataclass

from numalign.memory.eligibility import PodLevel, container_request, pod_level
from numalign.memory.state import MemoryState
from numalign.model.feature_gates import FeatureGates
from numalign.model.pod import Container, Pod
from numalign.model.qos import is_guaranteed


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCounts:
    """What to add to the counters. `source` is `node` or `pod`, empty if nothing is added.

    The last five are published only with pod-level management on (MEM-66).
    """

    pinning_requests: int = 0
    pinning_errors: int = 0
    source: str = ""
    allocations: int = 0
    allocation_errors: int = 0
    node_exclusive: int = 0
    pod_exclusive: int = 0
    pod_shared: int = 0


NOTHING = MemoryCounts()


def count_allocate(
    before: MemoryState, pod: Pod, container: Container, gates: FeatureGates, *, failed: bool
) -> MemoryCounts:
    """What one Allocate under the Static policy adds (MEM-64..MEM-66).

    `before` is the state it was decided on: a container that has blocks already counts as a
    request, and as nothing more.
    """
    if not is_guaranteed(pod, gates) or pod_level(pod, gates) is PodLevel.BARRED:
        return NOTHING
    if failed:
        return MemoryCounts(
            pinning_requests=1, pinning_errors=1, source="node", allocation_errors=1
        )
    if before.blocks(pod.uid, container.name) is not None:
        return MemoryCounts(pinning_requests=1)
    request = container_request(pod, container, gates) or {}
    return MemoryCounts(
        pinning_requests=1, source="node", allocations=len(request), node_exclusive=1
    )


def count_allocate_pod(pod: Pod, gates: FeatureGates, *, failed: bool) -> MemoryCounts:
    """What one AllocatePod under the Static policy adds (MEM-64..MEM-66)."""
    if not is_guaranteed(pod, gates):
        return NOTHING
    if failed:
        return MemoryCounts(pinning_requests=1, pinning_errors=1, source="pod", allocation_errors=1)
    own = [bool(container_request(pod, c, gates)) for c in pod.all_containers()]
    own_apps = sum(own[len(pod.init_containers) :])
    return MemoryCounts(
        pinning_requests=1 + len(pod.init_containers) + own_apps,
        source="pod",
        allocations=len(own),
        pod_exclusive=sum(own),
        pod_shared=len(own) - sum(own),
    )
