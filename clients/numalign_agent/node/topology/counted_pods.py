"""Which admitted pods the fingerprint is of. Pure.

A scheduler that compares fingerprints leaves out pods without exclusive resources where the object
says so. What it takes for exclusive is its own rule, and has to be met: in a Guaranteed pod whole
CPUs, any memory and any huge pages; in every pod devices of which the zones tell. Init containers
that end before the others start do not count.

Neither do commands of `numalign run`, nor what else is admitted and is no pod of the cluster: no
scheduler would ever come to the same fingerprint.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from numalign.model.quantity import Quantity, is_whole_cpus
from numalign.v1 import types_pb2 as pb
from numalign_agent.node.settings import Counted, Fingerprint

_GUARANTEED = "Guaranteed"
_CPU, _MEMORY, _HUGE_PAGES = "cpu", "memory", "hugepages-"


def counted(
    admissions: Iterable[pb.AdmissionRecord], scope: Counted, zone_resources: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Namespace and name of the pods that count; `zone_resources` are those of any zone."""
    method = scope.method
    for record in admissions:
        if not scope.is_of_the_cluster(record.owner):
            continue
        if method is Fingerprint.ALL or _has_exclusive(record, zone_resources):
            yield record.namespace, record.name


def _has_exclusive(record: pb.AdmissionRecord, zone_resources: Collection[str]) -> bool:
    ending = {c.name for c in record.containers if c.kind == pb.CONTAINER_KIND_INIT}
    if any(
        devices.resource in zone_resources
        for allocation in record.allocations
        if allocation.container not in ending
        for devices in allocation.devices
    ):
        return True
    return record.qos_class == _GUARANTEED and any(
        _asks_for_exclusive(container.amounts.requests)
        for container in record.resources.containers
        if container.container not in ending
    )


def _asks_for_exclusive(requests: Mapping[str, str]) -> bool:
    for resource, text in requests.items():
        amount = Quantity.parse(text)
        if amount.sign() <= 0:
            continue
        if resource == _CPU and is_whole_cpus(amount):
            return True
        if resource == _MEMORY or resource.startswith(_HUGE_PAGES):
            return True
    return False
