"""The NodeResourceTopology of a node, and whether one that is there says the same. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numalign.model.machine import Machine
from numalign.v1 import types_pb2 as pb
from numalign.v1.node_resources_pb2 import NodeResources
from numalign_agent.node.settings import Counted, Fingerprint
from numalign_agent.node.topology.counted_pods import counted
from numalign_agent.node.topology.fingerprint import fingerprint
from numalign_agent.node.topology.zones import zones

Json = Mapping[str, Any]

API_VERSION = "topology.node.k8s.io/v1alpha2"
KIND = "NodeResourceTopology"

_CONTENT = ("topologyPolicies", "zones", "attributes")
_MAX_NUMA_NODES = "max-allowable-numa-nodes"
_OLD_POLICIES = {
    "single-numa-node": "SingleNUMANode",
    "restricted": "Restricted",
    "best-effort": "BestEffort",
}
_LEVELS = {"container": "ContainerLevel", "pod": "PodLevel"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The Topology Manager's policy, scope and options, as configured."""

    policy: str
    scope: str
    options: Mapping[str, str]


def content(
    machine: Machine,
    policy: Policy,
    resources: NodeResources,
    admissions: Sequence[pb.AdmissionRecord],
    scope: Counted,
) -> dict[str, Any]:
    """What the object says of a node, without metadata."""
    made = zones(machine, resources)
    attributes = _policy_attributes(policy)
    if scope.method is not Fingerprint.NONE:
        told = {resource["name"] for zone in made for resource in zone["resources"]}
        attributes["nodeTopologyPodsFingerprint"] = fingerprint(counted(admissions, scope, told))
        attributes["nodeTopologyPodsFingerprintMethod"] = scope.method.value
    return {
        "topologyPolicies": [_old_policy(policy)],
        "zones": made,
        "attributes": [{"name": name, "value": value} for name, value in attributes.items()],
    }


def new_object(name: str, node_uid: str, made: Json) -> dict[str, Any]:
    """The object to create; it goes when the Node goes."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name, "ownerReferences": [_owner(name, node_uid)]},
        **made,
    }


def renewed(found: Json, name: str, node_uid: str, made: Json) -> dict[str, Any]:
    """The object that is there, saying what it should; what others put into it stays."""
    metadata = found.get("metadata") or {}
    others = [
        owner
        for owner in metadata.get("ownerReferences") or ()
        if (owner.get("kind"), owner.get("name")) != ("Node", name)
    ]
    owners = [*others, _owner(name, node_uid)]
    return {**found, **made, "metadata": {**metadata, "ownerReferences": owners}}


def says(found: Json, made: Json) -> bool:
    """Whether an object has this content."""
    return all(found.get(key) == made[key] for key in _CONTENT)


def writers(found: Json) -> str:
    """Who has written an object, as the API server remembers it."""
    fields = (found.get("metadata") or {}).get("managedFields") or ()
    return ", ".join(sorted({str(field.get("manager")) for field in fields})) or "unknown"


def _owner(name: str, node_uid: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node_uid}


def _policy_attributes(policy: Policy) -> dict[str, str]:
    attributes = {
        "topologyManagerPolicy": policy.policy,
        # Where there is no policy there is no scope either, but readers know these two alone.
        "topologyManagerScope": policy.scope if policy.scope in _LEVELS else "container",
    }
    for option, value in sorted(policy.options.items()):
        if option == _MAX_NUMA_NODES:
            attributes["topologyManagerMaxNUMANodes"] = value
        else:
            words = "".join(word.capitalize() for word in option.split("-"))
            attributes[f"topologyManagerOption{words}"] = value
    return attributes


def _old_policy(policy: Policy) -> str:
    """The deprecated word for policy and scope together."""
    if policy.policy not in _OLD_POLICIES:
        return "None"
    return _OLD_POLICIES[policy.policy] + _LEVELS.get(policy.scope, _LEVELS["container"])
