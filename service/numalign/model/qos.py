"""The QoS class of a pod (CPU-34).

Separate from the effective resources because it follows its own rules: it looks at cpu and
memory alone, counts only positive amounts, and asks every container for both limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from numalign.model.feature_gates import FeatureGates
from numalign.model.pod import Pod
from numalign.model.quantity import Quantity

_QOS_RESOURCES = ("cpu", "memory")


class QosClass(StrEnum):
    """The classes, with the words of the pod API."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


def qos_class(pod: Pod, gates: FeatureGates) -> str:
    """The class in force: the one in the pod's status if there is one, else the computed one.

    A status may hold any text, so this is not always a `QosClass` (CPU-34).
    """
    return pod.status_qos_class or compute_qos_class(pod, gates)


def is_guaranteed(pod: Pod, gates: FeatureGates) -> bool:
    """Whether the class in force is Guaranteed (CPU-34)."""
    return qos_class(pod, gates) == QosClass.GUARANTEED


def compute_qos_class(pod: Pod, gates: FeatureGates) -> QosClass:
    """The class that the spec gives the pod (CPU-34).

    With the PodLevelResources gate on, a pod-level section decides alone, even an empty one.
    """
    known = pod.computed_qos.get(gates.pod_level_resources)
    if known is None:
        known = pod.computed_qos[gates.pod_level_resources] = _computed(pod, gates)
    return QosClass(known)


def _computed(pod: Pod, gates: FeatureGates) -> QosClass:
    if gates.pod_level_resources and pod.resources is not None:
        requests = _positive((pod.resources.requests,))
        limits = _positive((pod.resources.limits,))
        every_limit = not pod.resources.limits or len(limits) == len(_QOS_RESOURCES)
    else:
        sections = [container.resources for container in pod.all_containers()]
        requests = _positive(section.requests for section in sections)
        limits = _positive(section.limits for section in sections)
        every_limit = all(
            len(_positive((section.limits,))) == len(_QOS_RESOURCES) for section in sections
        )
    if not requests and not limits:
        return QosClass.BEST_EFFORT
    if every_limit and requests == limits:
        return QosClass.GUARANTEED
    return QosClass.BURSTABLE


def _positive(lists: Iterable[Mapping[str, Quantity]]) -> dict[str, int]:
    """Sum of the positive cpu and memory amounts by name, in billionths."""
    total: dict[str, int] = {}
    for amounts in lists:
        for name in _QOS_RESOURCES:
            quantity = amounts.get(name)
            if quantity is not None and quantity.nanos > 0:
                total[name] = total.get(name, 0) + quantity.nanos
    return total
