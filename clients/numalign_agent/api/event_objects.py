"""Events as the API has them. Pure: the time is handed in."""

from __future__ import annotations

from typing import Any

from numalign_agent.pod import AgentPod
from numalign_agent.status.port import EventType
from numalign_agent.status.times import rfc3339

COMPONENT = "numalign-agent"


def event_object(
    pod: AgentPod, kind: EventType, reason: str, message: str, *, node_name: str, now: float
) -> dict[str, Any]:
    """An event about a pod that happened once, at `now` (seconds since the epoch)."""
    moment = rfc3339(now)
    namespace = pod.namespace or "default"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{pod.name}.{int(now * 1e9):x}", "namespace": namespace},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": pod.uid,
        },
        "type": kind.value,
        "reason": reason,
        "message": message,
        "source": {"component": COMPONENT, "host": node_name},
        "reportingComponent": COMPONENT,
        "reportingInstance": node_name,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }
