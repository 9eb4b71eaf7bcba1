"""What becomes of a pod that Admission does not want to start."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from numalign_agent.pod import AgentPod


class OnReject(StrEnum):
    """What the configuration wants done with refused pods."""

    WAIT = "wait"
    """They do not start; the kubelet tries again, and each time they are judged anew."""

    EVICT = "evict"
    """They do not start and are evicted, so that their controller makes others."""

    SHARED = "shared"
    """They start in the shared pool."""


class Consequence(StrEnum):
    """What to do with one refused pod."""

    VETO = "veto"
    EVICT = "evict"
    SHARED = "shared"


OWN_LABELS = ("app.kubernetes.io/part-of", "app.kubernetes.io/name")
OWN_NAME = "numalign"
"""Pods with one of these labels of this value are numalign's own."""


def exemption(pod: AgentPod, namespaces: Collection[str]) -> str:
    """Why a pod is never kept from starting; empty if it may be.

    `pod` has the annotations and labels of the sandbox, and the spec as far as it is known.
    """
    if pod.is_mirror:
        return "it is a mirror pod"
    if pod.is_static:
        return "it is a static pod"
    if pod.is_critical:
        return "it is critical"
    if any(pod.labels.get(label) == OWN_NAME for label in OWN_LABELS):
        return "it is numalign's own"
    if pod.namespace in namespaces:
        return f'namespace "{pod.namespace}" is exempt'
    return ""


def consequence(
    on_reject: OnReject, *, exempt: bool, running: bool, deferred: bool, estimated: bool
) -> Consequence:
    """What to do with a refusal.

    A pod that runs already goes on in the shared pool; so does one of which no spec is known,
    since it might be critical. A deferral says that asking again will help: nobody is evicted
    for it.
    """
    if running or exempt or estimated or on_reject is OnReject.SHARED:
        return Consequence.SHARED
    if on_reject is OnReject.EVICT and not deferred:
        return Consequence.EVICT
    return Consequence.VETO
