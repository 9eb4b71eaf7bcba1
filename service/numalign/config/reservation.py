"""What the node keeps for itself: the CPU, memory and huge pages that pods cannot have.

A kubelet adds up what is reserved for the system, for itself and by hard eviction; the
`numalign` section may state the result instead. Rules CPU-15..17 and MEM-8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from numalign.memory.reserved_config import node_allocatable_reservation
from numalign.model.quantity import Quantity

CPU = "cpu"
MEMORY = "memory"
_HUGE_PAGES = "hugepages-"
_OTHERS = frozenset({"ephemeral-storage", "pid"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """`milli_cpu` in thousandths, None if the entry is absent; memory and huge pages by name."""

    milli_cpu: int | None = None
    memory: Mapping[str, Quantity] = field(default_factory=dict)


def is_reservable(resource: str) -> bool:
    """Whether a Node Allocatable reservation can have an entry of this name."""
    return resource in (CPU, MEMORY) or resource in _OTHERS or resource.startswith(_HUGE_PAGES)


def stated_reservation(stated: Mapping[str, Quantity], reserved_cpus: int) -> Reservation:
    """The reservation that a configuration states as it is.

    `reserved_cpus` is the size of `reservedSystemCPUs`: without a cpu entry, a list that is
    not empty makes one of its size; next to an entry it is left to contradict it.
    """
    cpu = stated.get(CPU)
    milli_cpu = None if cpu is None else cpu.milli_value()
    if milli_cpu is None and reserved_cpus:
        milli_cpu = reserved_cpus * 1000
    return Reservation(milli_cpu=milli_cpu, memory=_memory_of(stated))


def summed_reservation(
    kube_reserved: Mapping[str, Quantity],
    system_reserved: Mapping[str, Quantity],
    hard_eviction_memory: Quantity | None,
    reserved_cpus: int,
) -> Reservation:
    """The kubelet's own sum over the node's capacity of CPU and memory.

    A list of reserved CPUs replaces both cpu amounts by its size (CPU-17). Huge pages cannot
    be reserved this way (MEM-11), so they never have an entry.
    """
    if reserved_cpus:
        kube_reserved = {name: q for name, q in kube_reserved.items() if name != CPU}
        system_reserved = {**system_reserved, CPU: Quantity.from_int(reserved_cpus)}
    sums = node_allocatable_reservation(
        (CPU, MEMORY), system_reserved, kube_reserved, hard_eviction_memory
    )
    cpu = sums.get(CPU)
    return Reservation(
        milli_cpu=None if cpu is None else cpu.milli_value(), memory=_memory_of(sums)
    )


def _memory_of(entries: Mapping[str, Quantity]) -> dict[str, Quantity]:
    return {
        name: quantity
        for name, quantity in entries.items()
        if name == MEMORY or name.startswith(_HUGE_PAGES)
    }
