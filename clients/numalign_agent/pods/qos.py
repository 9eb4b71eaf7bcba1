"""The QoS class of a pod, by the rules that Admission goes by. Pure."""

from __future__ import annotations

from numalign.errors import InvalidInput
from numalign.kube.pod_decode import read_pod
from numalign.kube.pod_json import pod_from_json
from numalign.model.feature_gates import FeatureGates
from numalign.model.qos import qos_class
from numalign_agent.pod import AgentPod


def qos_of(pod: AgentPod) -> str:
    """The class that the source states, else the one computed; empty for a pod that is invalid."""
    stated = pod.status.get("qosClass")
    if stated:
        return str(stated)
    try:
        decoded, violations = read_pod(pod_from_json(pod.document))
    except InvalidInput:
        return ""
    return "" if violations else str(qos_class(decoded, FeatureGates()))
