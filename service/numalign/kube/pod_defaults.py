"""What the API server fills in before a pod reaches a node.

Separate from reading JSON because only manifests need it: a pod that an agent hands over has
been through the API server. Filled in is what changes a decision on the node.
"""

from __future__ import annotations

from collections.abc import MutableMapping

from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_decode import read_pod
from numalign.model.pod_resources import (
    containers_limits,
    containers_requests,
    is_pod_level_resource,
)
from numalign.model.quantity import Quantity
from numalign.model.resource_names import is_hugepages


def apply_defaults(pod: core_pb2.Pod) -> None:
    """Fill in `pod`, in place.

    Requests come from limits. At pod level, first the huge page limits come from the
    containers' limits, then requests from the containers' requests (huge pages apart) and
    then from the pod's own limits. Ports get their protocol and, with the host's network,
    their host port; the pod its restart policy.
    """
    spec = pod.spec
    for container in (*spec.init_containers, *spec.containers):
        _fill(container.resources.requests, container.resources.limits)
        for port in container.ports:
            port.protocol = port.protocol or "TCP"
            if spec.host_network and not port.host_port:
                port.host_port = port.container_port
    spec.restart_policy = spec.restart_policy or "Always"
    if spec.HasField("resources") and (spec.resources.limits or spec.resources.requests):
        _fill_pod_level(pod)


def _fill_pod_level(pod: core_pb2.Pod) -> None:
    section = pod.spec.resources
    read, _ = read_pod(pod)
    limits = {n: q for n, q in containers_limits(read).items() if is_hugepages(n)}
    _fill(section.limits, _texts(limits))
    if not section.limits:
        return
    requests = {
        name: quantity
        for name, quantity in containers_requests(read).items()
        if is_pod_level_resource(name) and not is_hugepages(name)
    }
    _fill(section.requests, _texts(requests))
    _fill(section.requests, {n: q for n, q in section.limits.items() if is_pod_level_resource(n)})


def _texts(quantities: dict[str, Quantity]) -> dict[str, core_pb2.Quantity]:
    return {n: core_pb2.Quantity(string=q.canonical()) for n, q in quantities.items()}


def _fill(
    amounts: MutableMapping[str, core_pb2.Quantity],
    source: MutableMapping[str, core_pb2.Quantity],
) -> None:
    """Take what is missing in `amounts` from `source`."""
    for name in source:
        if name not in amounts:
            amounts[name].string = source[name].string
