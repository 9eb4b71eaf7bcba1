"""Whether a container may swap, which decides on resizes of its memory (RSZ-3).

Separate from the resize handler, which only needs to be told: here the kubelet's setting, the
host and the pod come together.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.importance import is_critical
from numalign.model.feature_gates import FeatureGates
from numalign.model.pod import Container
from numalign.model.qos import QosClass, qos_class
from numalign.model.quantity import ZERO


class SwapBehavior(StrEnum):
    """What containers may do, with the words of `memorySwap.swapBehavior`."""

    NONE = "NoSwap"
    LIMITED = "LimitedSwap"


def swap_behavior(
    configured: SwapBehavior, can_limit: bool, gates: FeatureGates
) -> Callable[[AdmitPod, Container], str]:
    """How a container of a pod may swap on a node with this setting.

    `can_limit` says whether the host can limit the swap of a cgroup; where it cannot, nothing
    swaps. Else containers of Burstable pods do that are not critical, if their memory is
    requested and not limited to just that.
    """

    def of(pod: AdmitPod, container: Container) -> str:
        if configured is SwapBehavior.NONE or not can_limit:
            return SwapBehavior.NONE
        request = container.resources.requests.get("memory", ZERO)
        limit = container.resources.limits.get("memory", ZERO)
        swaps = (
            not is_critical(pod)
            and qos_class(pod.pod, gates) == QosClass.BURSTABLE
            and request != limit
        )
        return SwapBehavior.LIMITED if swaps else SwapBehavior.NONE

    return of
