"""The node declared features handler: what a pod requires of its node (FEAT-2)."""

from __future__ import annotations

from collections.abc import Collection

from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.verdict import ADMITTED, Verdict, rejected

REASON = "PodFeatureUnsupported"

_HOST_NETWORK = "UserNamespacesHostNetworkSupport"
_RESTART_ALL = "RestartAllContainersOnContainerExits"


def decide_declared_features(pod: AdmitPod, declared: Collection[str]) -> Verdict:
    """Refuse a pod that requires a feature which the node does not declare."""
    missing = [name for name in required_features(pod) if name not in declared]
    if not missing:
        return ADMITTED
    return rejected(
        REASON, f"Pod requires node features that are not available: {', '.join(missing)}"
    )


def required_features(pod: AdmitPod) -> tuple[str, ...]:
    """Names of the features that the pod requires, sorted."""
    return tuple(
        name
        for name, is_required in (
            (_RESTART_ALL, pod.restarts_all_containers),
            (_HOST_NETWORK, pod.host_network and pod.host_users is False),
        )
        if is_required
    )
