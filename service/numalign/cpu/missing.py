"""What a pod asks for and does not hold: pods placed under another policy, or by other books.

Separate from hints and allocation, because nothing is given here: the pod runs already.
"""

from __future__ import annotations

from numalign.cpu.eligibility import container_counts, is_left_alone, is_managed_pod, pod_count
from numalign.cpu.state import CpuState
from numalign.model.feature_gates import FeatureGates
from numalign.model.pod import Pod
from numalign.provider.engine import Lost


def missing_cpus(
    state: CpuState, pod: Pod, finished: frozenset[str], gates: FeatureGates
) -> tuple[Lost, ...]:
    """Containers that ask for exclusive CPUs (CPU-35) and have none, or another number."""
    if is_left_alone(pod, gates):
        return ()
    if is_managed_pod(pod, gates):
        held = state.pod_sets.get(pod.uid)
        count = pod_count(pod, gates)
        if count == 0 or (held is not None and len(held) == count):
            return ()
        if held is None:
            return (_unpinned("", count),)
        return (Lost(container="", message=f'holds CPUs "{held}", asks for {count}', differs=True),)
    counts = container_counts(pod, gates)
    found = []
    for container in pod.all_containers():
        count = counts[container.name]
        cpus = state.assignment(pod.uid, container.name)
        if cpus is None:
            if count and container.name not in finished:
                found.append(_unpinned(container.name, count))
        elif len(cpus) != count:
            message = f'holds CPUs "{cpus}", asks for {count}'
            found.append(Lost(container=container.name, message=message, differs=True))
    return tuple(found)


def _unpinned(container: str, count: int) -> Lost:
    return Lost(
        container=container, message=f"not pinned: asks for {count} exclusive CPUs, has none"
    )
