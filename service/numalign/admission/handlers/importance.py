"""Which pods matter more: static, mirror and critical ones, and who may be ended for whom.

Separate because eviction, taints and preemption ask the same questions.
"""

from __future__ import annotations

from numalign.admission.handlers.admit_pod import AdmitPod

CRITICAL_PRIORITY = 2_000_000_000
"""The lowest priority of a critical pod."""

_SOURCE = "kubernetes.io/config.source"
_MIRROR = "kubernetes.io/config.mirror"
_API = "api"


def is_static(pod: AdmitPod) -> bool:
    """Whether the pod comes from another source than the API server."""
    source = pod.annotations.get(_SOURCE)
    return source is not None and source != _API


def is_mirror(pod: AdmitPod) -> bool:
    """Whether the pod only stands for a static pod in the API server."""
    return _MIRROR in pod.annotations


def is_critical(pod: AdmitPod) -> bool:
    """Whether the node must run the pod whatever it costs."""
    return (
        is_static(pod)
        or is_mirror(pod)
        or (pod.priority is not None and pod.priority >= CRITICAL_PRIORITY)
    )


def may_preempt(preemptor: AdmitPod, victim: AdmitPod) -> bool:
    """Whether `victim` may be ended to make room for `preemptor` (PRE-4)."""
    if is_critical(preemptor) and not is_critical(victim):
        return True
    return (
        preemptor.priority is not None
        and victim.priority is not None
        and preemptor.priority > victim.priority
    )
