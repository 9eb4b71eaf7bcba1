"""The eviction handler: which pods a node under pressure still takes (EVI-1 to EVI-6).

The conditions are the eviction manager's own; how they come about is in the `eviction_*` files.
"""

from __future__ import annotations

from collections.abc import Sequence

from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.eviction_signals import MEMORY_PRESSURE
from numalign.admission.handlers.importance import is_critical
from numalign.admission.handlers.node_view import Taint
from numalign.admission.handlers.tolerations import any_tolerates
from numalign.admission.handlers.verdict import ADMITTED, Verdict, rejected
from numalign.model.feature_gates import FeatureGates
from numalign.model.qos import QosClass, qos_class

REASON = "Evicted"

_MEMORY_TAINT = Taint(key="node.kubernetes.io/memory-pressure", effect="NoSchedule")


def decide_eviction(pod: AdmitPod, conditions: Sequence[str], gates: FeatureGates) -> Verdict:
    """Whether the pod may start under these conditions, named in the order given (EVI-5)."""
    if not conditions or is_critical(pod):
        return ADMITTED
    if tuple(conditions) == (MEMORY_PRESSURE,) and (
        qos_class(pod.pod, gates) != QosClass.BEST_EFFORT
        or any_tolerates(pod.tolerations, _MEMORY_TAINT)
    ):
        return ADMITTED
    return rejected(REASON, f"The node had condition: [{' '.join(conditions)}]. ")
