"""What a topology-aware scheduler makes of a NodeResourceTopology, written anew for tests.

The filter of the NodeResourceTopologyMatch plugin of kubernetes-sigs/scheduler-plugins, as far as
one node and pods without sidecars go, and the check that its cache makes of a fingerprint. What a
node has as a whole is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import xxhash

from numalign.model.quantity import Quantity

Json = Mapping[str, Any]
Amounts = dict[str, Quantity]

_ZONE = re.compile(r"node-(\d+)")


def fits(topology: Json, pod: Json) -> bool:
    """Whether the filter lets a pod pass to the node; any other policy lets all pass."""
    attributes = attributes_of(topology)
    if attributes.get("topologyManagerPolicy") != "single-numa-node":
        return True
    guaranteed = is_guaranteed(pod)
    nodes = numa_nodes(topology)
    if attributes.get("topologyManagerScope") == "pod":
        return chosen(nodes, effective_request(pod), guaranteed) is not None
    for container in pod["spec"].get("initContainers") or ():
        if chosen(nodes, requests_of(container), guaranteed) is None:
            return False
    for container in pod["spec"]["containers"]:
        wanted = requests_of(container)
        node = chosen(nodes, wanted, guaranteed)
        if node is None:
            return False
        for resource, amount in wanted.items():
            nodes[node][resource] = nodes[node].get(resource, Quantity.parse("0")) - amount
    return True


def chosen(nodes: Mapping[int, Amounts], wanted: Amounts, guaranteed: bool) -> int | None:
    """The first NUMA node that has enough of everything; None: there is none."""
    left = set(nodes)
    for resource, amount in wanted.items():
        if amount.is_zero():
            continue
        told = {node for node, amounts in nodes.items() if resource in amounts}
        if not told and not is_native(resource):
            continue  # a device without a NUMA node
        left &= {
            node
            for node in told
            if (not guaranteed and is_native(resource)) or nodes[node][resource] >= amount
        }
        if not left:
            return None
    return min(left)


def numa_nodes(topology: Json) -> dict[int, Amounts]:
    """What each NUMA node has available."""
    found = {}
    for zone in topology["zones"]:
        named = _ZONE.fullmatch(zone["name"])
        if zone["type"] == "Node" and named:
            found[int(named[1])] = {
                each["name"]: Quantity.parse(each["available"]) for each in zone["resources"]
            }
    return found


def effective_request(pod: Json) -> Amounts:
    """What a pod asks for: its containers together, or an init container if that is more."""
    total: Amounts = {}
    for container in pod["spec"]["containers"]:
        for resource, amount in requests_of(container).items():
            total[resource] = total.get(resource, Quantity.parse("0")) + amount
    for container in pod["spec"].get("initContainers") or ():
        for resource, amount in requests_of(container).items():
            total[resource] = max(total.get(resource, Quantity.parse("0")), amount)
    return total


def requests_of(container: Json) -> Amounts:
    """What one container asks for."""
    requests = (container.get("resources") or {}).get("requests") or {}
    return {resource: Quantity.parse(str(amount)) for resource, amount in requests.items()}


def is_guaranteed(pod: Json) -> bool:
    """Whether every container has limits of CPU and memory that are its requests."""
    for container in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]):
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        if not {"cpu", "memory"} <= limits.keys() or requests != limits:
            return False
    return True


def is_native(resource: str) -> bool:
    """Whether it is a resource of Kubernetes itself."""
    return "/" not in resource or "kubernetes.io/" in resource


def attributes_of(topology: Json) -> dict[str, str]:
    """Attributes by name."""
    return {each["name"]: each["value"] for each in topology.get("attributes") or ()}


def is_in_step(topology: Json, running: Iterable[Json]) -> bool:
    """Whether the object is of just these pods: only then does the cache take it over."""
    attributes = attributes_of(topology)
    method = attributes.get("nodeTopologyPodsFingerprintMethod")
    hashes = [
        xxhash.xxh64(
            pod["metadata"]["name"].encode(),
            seed=xxhash.xxh64_intdigest(pod["metadata"]["namespace"].encode()),
        ).intdigest()
        for pod in running
        if method != "with-exclusive-resources" or has_exclusive(pod, numa_nodes(topology))
    ]
    whole = xxhash.xxh64()
    for each in sorted(hashes):
        whole.update(each.to_bytes(8, "little"))
    return attributes.get("nodeTopologyPodsFingerprint") == f"pfp0v001{whole.hexdigest()}"


def has_exclusive(pod: Json, nodes: Mapping[int, Amounts]) -> bool:
    """Whether a pod holds something that nobody else can have."""
    told = {resource for amounts in nodes.values() for resource in amounts}
    for container in pod["spec"]["containers"]:
        for resource, amount in requests_of(container).items():
            if not is_native(resource):
                if resource in told:
                    return True
            elif is_guaranteed(pod) and amount.sign() > 0:
                whole = amount.milli_value() % 1000 == 0
                if whole or resource != "cpu":
                    return True
    return False
