"""The pod features handler: pod-level resources where they cannot be honoured (FEAT-1)."""

from __future__ import annotations

from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.verdict import ADMITTED, Verdict, rejected
from numalign.model.pod_resources import pod_level_resources_set

REASON = "PodLevelResourcesNotSupported"


def decide_pod_features(
    pod: AdmitPod, pod_level_resources: bool, operating_system: str = "linux"
) -> Verdict:
    """Refuse pod-level resources with the feature off, or on a system that has none of them."""
    if not pod_level_resources_set(pod.pod):
        return ADMITTED
    match operating_system:
        case "linux":
            if pod_level_resources:
                return ADMITTED
            return rejected(REASON, "PodLevelResources feature gate is disabled")
        case "windows":
            return rejected(REASON, "pod-level resources are not supported on Windows")
    return rejected(REASON, "pod-level resources are not supported on the node")
