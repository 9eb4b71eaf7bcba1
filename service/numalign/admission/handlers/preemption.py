"""Which pods make room for a critical one (PRE-1 to PRE-7, PRE-10).

Pure: it names the victims in the order to end them; ending them is the node agent's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.failures import Failure, InsufficientResource
from numalign.admission.handlers.importance import is_critical, may_preempt
from numalign.admission.handlers.node_usage import CPU, MEMORY, PODS, whole
from numalign.model.feature_gates import FeatureGates
from numalign.model.pod_resources import containers_requests, pod_level_resources_set
from numalign.model.qos import QosClass, qos_class
from numalign.model.quantity import ZERO

VICTIM_REASON = "Preempting"
VICTIM_MESSAGE = "Preempted in order to admit critical pod"
CONDITION_TYPE = "DisruptionTarget"
CONDITION_REASON = "TerminationByKubelet"
CONDITION_MESSAGE = "Pod was preempted by Kubelet to accommodate a critical pod."


@dataclass(frozen=True, slots=True)
class Preemption:
    """The failures that remain, the victims in kill order, or why none can be found."""

    failures: tuple[Failure, ...]
    victims: tuple[AdmitPod, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class _Shortage:
    resource: str
    amount: int


def preempt(
    pod: AdmitPod, failures: Sequence[Failure], active: Sequence[AdmitPod], gates: FeatureGates
) -> Preemption:
    """What is left of the failures when lower pods are ended for a critical one.

    `active` are the active pods in a fixed order, by which ties are broken (PRE-7).
    """
    if not is_critical(pod):
        return Preemption(tuple(failures))
    lacking = [f for f in failures if isinstance(f, InsufficientResource)]
    if len(lacking) < len(failures):
        return Preemption(tuple(f for f in failures if not isinstance(f, InsufficientResource)))
    if not lacking:
        return Preemption(())
    shortages = [_Shortage(f.resource, f.missing) for f in lacking]
    pool = [other for other in active if may_preempt(pod, other)]
    best_effort, burstable, guaranteed = _by_class(pool, gates)
    unmet = _after(shortages, [*best_effort, *burstable, *guaranteed], gates)
    if unmet:
        shown = "".join(f"(res: {s.resource}, q: {s.amount}), " for s in unmet)
        return Preemption(
            (),
            error="preemption: error finding a set of pods to preempt:"
            f" no set of running pods found to reclaim resources: [{shown}]",
        )
    chosen_guaranteed = _pick(
        guaranteed, _after(shortages, [*best_effort, *burstable], gates), gates
    )
    chosen_burstable = _pick(
        burstable, _after(shortages, [*best_effort, *chosen_guaranteed], gates), gates
    )
    chosen_best_effort = _pick(
        best_effort, _after(shortages, [*chosen_burstable, *chosen_guaranteed], gates), gates
    )
    return Preemption((), victims=(*chosen_best_effort, *chosen_burstable, *chosen_guaranteed))


def freed(pod: AdmitPod, resource: str, gates: FeatureGates) -> int:
    """How much of a resource ending the pod frees (PRE-5).

    With pod-level resources only those count, also for what they do not name.
    """
    if resource == PODS:
        return 1
    section = pod.pod_level
    if gates.pod_level_resources and section is not None and pod_level_resources_set(pod.pod):
        amount = section.requests.get(resource, ZERO)
    else:
        amount = containers_requests(pod.pod).get(resource, ZERO)
    if not amount.is_zero() and resource in pod.pod.overhead:
        amount += pod.pod.overhead[resource]
    return whole(resource, amount)


def _by_class(
    pods: Sequence[AdmitPod], gates: FeatureGates
) -> tuple[list[AdmitPod], list[AdmitPod], list[AdmitPod]]:
    """BestEffort, Burstable and Guaranteed pods, each in the order given."""
    best_effort: list[AdmitPod] = []
    burstable: list[AdmitPod] = []
    guaranteed: list[AdmitPod] = []
    for pod in pods:
        match qos_class(pod.pod, gates):
            case QosClass.BEST_EFFORT:
                best_effort.append(pod)
            case QosClass.BURSTABLE:
                burstable.append(pod)
            case QosClass.GUARANTEED:
                guaranteed.append(pod)
    return best_effort, burstable, guaranteed


def _after(
    shortages: Sequence[_Shortage], ended: Sequence[AdmitPod], gates: FeatureGates
) -> list[_Shortage]:
    """What is still missing when these pods are gone."""
    left = []
    for shortage in shortages:
        amount = shortage.amount - sum(freed(pod, shortage.resource, gates) for pod in ended)
        if amount > 0:
            left.append(_Shortage(shortage.resource, amount))
    return left


def _pick(
    pods: Sequence[AdmitPod], shortages: list[_Shortage], gates: FeatureGates
) -> list[AdmitPod]:
    """Pods to end until nothing is missing: each time the one that comes closest (PRE-7)."""
    pool = list(pods)
    picked: list[AdmitPod] = []
    while shortages:
        best = 0
        best_distance = _distance(pool[0], shortages, gates)
        for index, pod in enumerate(pool[1:], start=1):
            distance = _distance(pod, shortages, gates)
            if distance < best_distance or (
                distance == best_distance and not _asks_for_more(pod, pool[best], gates)
            ):
                best, best_distance = index, distance
        picked.append(pool[best])
        shortages = _after(shortages, [pool[best]], gates)
        # The kubelet fills the gap with the last pod, and the order decides ties.
        pool[best] = pool[-1]
        pool.pop()
    return picked


def _distance(pod: AdmitPod, shortages: Sequence[_Shortage], gates: FeatureGates) -> float:
    total = 0.0
    for shortage in shortages:
        left = shortage.amount - freed(pod, shortage.resource, gates)
        if left > 0:
            total += (left / shortage.amount) ** 2
    return total


def _asks_for_more(pod: AdmitPod, than: AdmitPod, gates: FeatureGates) -> bool:
    """Whether the pod asks for more memory, or for as much memory and more CPU."""
    return _size(pod, gates) > _size(than, gates)


def _size(pod: AdmitPod, gates: FeatureGates) -> tuple[int, int]:
    return freed(pod, MEMORY, gates), freed(pod, CPU, gates)
