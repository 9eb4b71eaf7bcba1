"""What no preemption can cure: the operating system and the groups policy (PRED-2)."""

from __future__ import annotations

from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.node_view import NodeView
from numalign.admission.handlers.verdict import ADMITTED, Verdict, rejected

OS_LABEL = "kubernetes.io/os"
"""The label that names an operating system."""

_STRICT = "Strict"


def decide_operating_system(
    pod: AdmitPod, node: NodeView, host_os: str, check_groups_policy: bool = True
) -> Verdict:
    """Whether the pod is meant for this operating system and runtime.

    The pod's own label counts, not its node selector.
    """
    label = pod.labels.get(OS_LABEL)
    if label is not None and label != host_os:
        return rejected(
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        )
    if pod.os_name is not None and pod.os_name != host_os:
        return rejected(
            "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"
        )
    if (
        check_groups_policy
        and pod.supplemental_groups_policy == _STRICT
        and not node.supplemental_groups_policy
    ):
        return rejected(
            "SupplementalGroupsPolicyNotSupported",
            "SupplementalGroupsPolicy=Strict is not supported in this node",
        )
    return ADMITTED
