"""The CPUs that are never given out exclusively. Rules CPU-15..CPU-20."""

from __future__ import annotations

from dataclasses import dataclass

from numalign.cpu.accumulator import AssignmentError
from numalign.cpu.take import Taker
from numalign.cpu.topology import CpuTopology
from numalign.model.cpu_set import NO_CPUS, CpuSet
from numalign.model.settings import CpuSettings


class ReservationError(ValueError):
    """The reservation cannot be made; the message is the kubelet's."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """The reserved CPUs, and all CPUs of the cores they are on (R and RP of the terms)."""

    cpus: CpuSet
    physical: CpuSet


def reserved_count(settings: CpuSettings) -> int:
    """How many CPUs to reserve (CPU-15..CPU-17). Raises ReservationError.

    Without an amount, a reserved list counts for as many CPUs as it names.
    """
    milli = settings.reserved_milli_cpu
    if milli is None and settings.reserved_cpus:
        return len(CpuSet.parse(settings.reserved_cpus))
    if milli is None:
        raise ReservationError(
            "[cpumanager] unable to determine reserved CPU resources for static policy"
        )
    if milli == 0:
        raise ReservationError(
            "[cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu "
            "to be greater than zero"
        )
    return -(-milli // 1000)


def reserve(listed: CpuSet, count: int, topology: CpuTopology, take: Taker) -> Reservation:
    """Reserve the listed CPUs, or `count` chosen ones (CPU-18..CPU-20).

    Raises ReservationError if they are not `count`, or not CPUs of the machine.
    """
    cpus = listed or _chosen(topology, count, take)
    if len(cpus) != count:
        raise ReservationError(
            "[cpumanager] unable to reserve the required amount of CPUs "
            f"(size of {cpus} did not equal {count})"
        )
    physical = 0
    for cpu in cpus:
        core = topology.core_of.get(cpu)
        if core is None:
            raise ReservationError(
                "[cpumanager] unable to build the reserved physical CPUs from the reserved set: "
                f"unknown CPU ID: {cpu}"
            )
        physical |= topology.cores[core]
    return Reservation(cpus, CpuSet(physical))


def _chosen(topology: CpuTopology, count: int, take: Taker) -> CpuSet:
    try:
        return CpuSet(take(topology.all_cpus.bits, count))
    except AssignmentError:
        # The size check that follows says what is wrong (CPU-18).
        return NO_CPUS
