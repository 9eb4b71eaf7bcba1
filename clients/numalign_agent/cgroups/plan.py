"""What is written into a control group, in which order, and whether it came to be. Pure.

Memory nodes come before CPUs: what runs on new CPUs touches memory at once. A kind of partition
comes after the CPUs that it is made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from numalign.model.cpu_set import NO_CPUS, CpuSet, CpuSetSyntaxError
from numalign_agent.cgroups.errors import (
    CPU_MAX,
    CPUS,
    CPUS_EFFECTIVE,
    MEMS,
    MEMS_EFFECTIVE,
    PARTITION,
)

_UNLIMITED = "max"


class Partition(StrEnum):
    """How CPUs of a group are kept from others by the kernel itself."""

    MEMBER = "member"
    """They are not."""

    ROOT = "root"
    """No group beside it may use them."""

    ISOLATED = "isolated"
    """Nor does the scheduler balance load over them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedGroup:
    """How a control group is to be. Empty `cpus` or `mems` leave that setting alone.

    `hugepages` are bytes by page size (`2MB`), None: not limited; of a size that is not named
    there are none. `unlimited_cpu` takes a CFS quota off (CPU-87).
    """

    cpus: CpuSet = NO_CPUS
    mems: CpuSet = NO_CPUS
    partition: Partition = Partition.MEMBER
    hugepages: Mapping[str, int] | None = None
    unlimited_cpu: bool = False


@dataclass(frozen=True, slots=True)
class Write:
    """A value for a file of the group."""

    file: str
    value: str


def controllers(wanted: WantedGroup, available: str) -> tuple[str, ...]:
    """The controllers that a group needs so that it can be as wanted.

    `available` is what the root has: where no huge pages are given and none can be limited,
    that is left.
    """
    needed = ["cpuset"] if wanted.cpus or wanted.mems else []
    if wanted.hugepages or (wanted.hugepages is not None and not missing(("hugetlb",), available)):
        needed.append("hugetlb")
    return tuple(needed)


def missing(needed: Iterable[str], present: str) -> tuple[str, ...]:
    """The controllers of `needed` that a file such as cgroup.controllers does not list."""
    there = set(present.split())
    return tuple(name for name in needed if name not in there)


def writes(
    wanted: WantedGroup, files: frozenset[str], page_sizes: Iterable[str]
) -> tuple[Write, ...]:
    """What to write, in order; `files` are those that the group has, `page_sizes` its limits."""
    order: list[Write] = []
    if wanted.mems:
        order.append(Write(MEMS, str(wanted.mems)))
    if wanted.cpus:
        order.append(Write(CPUS, str(wanted.cpus)))
    if PARTITION in files or wanted.partition is not Partition.MEMBER:
        order.append(Write(PARTITION, wanted.partition.value))
    if wanted.hugepages is not None:
        for size in page_sizes:
            limit = str(wanted.hugepages.get(size, 0))
            order += [
                Write(name, limit)
                for name in (f"hugetlb.{size}.max", f"hugetlb.{size}.rsvd.max")
                if name in files
            ]
    if wanted.unlimited_cpu and CPU_MAX in files:
        order.append(Write(CPU_MAX, _UNLIMITED))
    return tuple(order)


def to_read(written: Iterable[Write]) -> tuple[str, ...]:
    """The files that say what came of it."""
    return tuple(_EFFECTIVE.get(write.file, write.file) for write in written)


def differences(written: Iterable[Write], found: Mapping[str, str]) -> tuple[str, ...]:
    """What is not as it was written, a sentence each; `found` are the contents of `to_read`.

    The kernel takes CPUs that do not exist, and CPUs that the group above does not have: only
    what is effective tells.
    """
    told = []
    for write in written:
        file = _EFFECTIVE.get(write.file, write.file)
        text = found[file]
        if write.file in _EFFECTIVE:
            told += _set_difference(write, file, text)
        elif write.file == CPU_MAX:
            told += [] if is_unlimited(text) else [f"{file} is {text} after {write.value}"]
        elif text != write.value:
            told.append(f"{file} is {text} after {write.value}")
    return tuple(told)


def is_unlimited(cpu_max: str) -> bool:
    """Whether the content of a cpu.max file says that there is no CFS quota."""
    return cpu_max.partition(" ")[0] == _UNLIMITED


_EFFECTIVE = {CPUS: CPUS_EFFECTIVE, MEMS: MEMS_EFFECTIVE}


def _set_difference(write: Write, file: str, text: str) -> list[str]:
    wanted = CpuSet.parse(write.value)
    try:
        found = CpuSet.parse(text)
    except CpuSetSyntaxError:
        return [f'{file} is "{text}", which is no list']
    if found == wanted:
        return []
    lost = CpuSet(wanted.bits & ~found.bits)
    told = f"{file} is {text or 'empty'} after {write.value} was written"
    if lost:
        told += f": {lost} {'are' if len(lost) > 1 else 'is'} not there, or not of the group above"
    return [told]
