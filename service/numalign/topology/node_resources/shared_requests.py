"""What a pod asks of the shared CPUs, in thousandths.

Separate from what pods are given: containers without exclusive CPUs are given nothing, but
what they asked for is not free either.
"""

from __future__ import annotations

from collections.abc import Collection

from numalign.model.feature_gates import FeatureGates
from numalign.model.pod import Container, Pod, Resources

_CPU = "cpu"


def shared_millicores(
    pod: Pod, exclusive: Collection[str], gates: FeatureGates, *, has_own_cpus: bool
) -> int:
    """What the pod's containers ask of the shared CPUs once it runs.

    `exclusive` are the containers with CPUs of their own. Containers that end before the
    others start are left out. A pod-level request counts instead of its containers', less
    what is exclusive; one that has CPUs cut for it (`has_own_cpus`) asks for nothing.
    """
    if has_own_cpus:
        return 0
    running = [c for c in pod.all_containers() if not c.is_regular_init]
    shared = sum(_milli(c.resources) for c in running if c.name not in exclusive)
    section = pod.resources
    if gates.pod_level_resources and section is not None and _CPU in section.requests:
        return max(0, _milli(section) - _total(running, exclusive))
    return shared


def _total(containers: list[Container], names: Collection[str]) -> int:
    return sum(_milli(c.resources) for c in containers if c.name in names)


def _milli(resources: Resources) -> int:
    quantity = resources.requests.get(_CPU)
    return 0 if quantity is None else quantity.milli_value()
