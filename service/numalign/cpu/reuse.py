"""CPUs of init containers that later containers of the same pod may use again.

Rules CPU-66..CPU-68.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from numalign.cpu.state import CpuState
from numalign.model.cpu_set import NO_CPUS, CpuSet
from numalign.model.ids import PodUid
from numalign.model.pod import Container


def reusable_of(state: CpuState, pod_uid: PodUid) -> CpuSet:
    """The CPUs that the next container of the pod may use again."""
    return state.reusable.get(pod_uid, NO_CPUS)


def with_reuse(state: CpuState, pod_uid: PodUid, container: Container, cpus: CpuSet) -> CpuState:
    """The state after `container` was found to hold `cpus`; other pods' entries go (CPU-66)."""
    before = reusable_of(state, pod_uid)
    after = before | cpus if container.is_regular_init else before - cpus
    if len(state.reusable) == 1 and state.reusable.get(pod_uid) == after:
        return state
    reusable: Mapping[PodUid, CpuSet] = {pod_uid: after}
    return replace(state, reusable=reusable)
