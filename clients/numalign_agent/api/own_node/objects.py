"""The Node and Lease objects of this node, and patches to its status. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numalign_agent.api.own_node.amounts import NodeAmounts, changed
from numalign_agent.api.own_node.facts import NodeFacts
from numalign_agent.status.conditions import condition_in, dated

Json = Mapping[str, Any]

LEASE_NAMESPACE = "kube-node-lease"


def node_object(name: str, facts: NodeFacts) -> dict[str, Any]:
    """The Node to register; its status is told apart."""
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": facts.architecture,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
    }


def status_patch(
    shown: Json, facts: NodeFacts, amounts: NodeAmounts | None, *, not_ready: str | None, now: str
) -> dict[str, Any]:
    """The patch that makes the status `shown` say what is so `now`.

    `amounts`: None leaves them as they are. `not_ready` says why no pod can be started; None
    when all is well.
    """
    patch: dict[str, Any] = {
        "conditions": [_ready(shown, not_ready, now)],
        "addresses": _addresses(facts),
        "nodeInfo": _node_info(facts),
    }
    if amounts is not None:
        patch["capacity"] = changed(shown.get("capacity") or {}, amounts.capacity)
        patch["allocatable"] = changed(shown.get("allocatable") or {}, amounts.allocatable)
    return patch


def lease_object(name: str, node: Json | None, seconds: float, now: str) -> dict[str, Any]:
    """The node's lease as of `now`, which has six digits of a second."""
    lease: dict[str, Any] = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": LEASE_NAMESPACE},
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": round(seconds),
            "renewTime": now,
        },
    }
    uid = ((node or {}).get("metadata") or {}).get("uid")
    if uid:
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
        lease["metadata"]["ownerReferences"] = [owner]
    return lease


def _ready(shown: Json, not_ready: str | None, now: str) -> dict[str, Any]:
    condition = (
        {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "numalign-agent is ready to run pods",
        }
        if not_ready is None
        else {
            "type": "Ready",
            "status": "False",
            "reason": "KubeletNotReady",
            "message": not_ready,
        }
    )
    before = condition_in(shown, "Ready")
    return {**dated(condition, [before] if before else [], now), "lastHeartbeatTime": now}


def _addresses(facts: NodeFacts) -> list[dict[str, str]]:
    hostname = {"type": "Hostname", "address": facts.hostname}
    internal = {"type": "InternalIP", "address": facts.address}
    return [internal, hostname] if facts.address else [hostname]


def _node_info(facts: NodeFacts) -> dict[str, str]:
    return {
        "machineID": facts.machine_id,
        "systemUUID": facts.system_uuid,
        "bootID": facts.boot_id,
        "kernelVersion": facts.kernel,
        "osImage": facts.os_image,
        "operatingSystem": "linux",
        "architecture": facts.architecture,
        "kubeletVersion": f"v{facts.version}-numalign",
        "containerRuntimeVersion": f"numalign-agent://{facts.version}",
        "kubeProxyVersion": "",
    }
