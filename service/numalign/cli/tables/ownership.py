"""Which mark stands for which owner on the NUMA map.

Separate from the drawing, because CPUs and devices share their owners and their marks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, product
from string import ascii_uppercase

from numalign.model.cpu_set import NO_CPUS, CpuSet
from numalign.v1 import hint_provider_pb2 as hp

SHARED = "."
RESERVED = "x"
FREE = "-"
_UNKNOWN = "?"
_COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "bright_red", "bright_cyan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """What the services say, as far as they answered. `pods` names pods by uid."""

    pods: Mapping[str, str] = field(default_factory=dict)
    cpu: hp.CpuState | None = None
    memory: hp.MemoryState | None = None
    device: hp.DeviceState | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """Marks by CPU and by device, and what each mark means."""

    names: Mapping[str, str]
    cpus: Mapping[int, str]
    devices: Mapping[tuple[str, str], str]
    shared: CpuSet
    reserved: CpuSet
    known: bool

    def mark_of_cpu(self, cpu: int) -> tuple[str, str]:
        """The mark of a CPU and its style; no mark where nobody told."""
        mark = self.cpus.get(cpu)
        if mark is not None:
            return mark, self.style_of(mark)
        if cpu in self.reserved:
            return RESERVED, "dim"
        if cpu in self.shared:
            return SHARED, ""
        return (_UNKNOWN, "") if self.known else ("", "")

    def mark_of_device(self, resource: str, device: str) -> tuple[str, str]:
        """The mark of a device and its style."""
        mark = self.devices.get((resource, device))
        return (FREE, "") if mark is None else (mark, self.style_of(mark))

    def style_of(self, mark: str) -> str:
        """The colour of an owner."""
        position = list(self.names).index(mark)
        return _COLOURS[position % len(_COLOURS)]


def ownership_of(books: Books) -> Ownership:
    """The owners in the books: containers, and pods that own CPUs as a whole."""
    marks = _marks()
    by_owner: dict[tuple[str, str], str] = {}
    cpus: dict[int, str] = {}
    devices: dict[tuple[str, str], str] = {}

    def mark(pod_uid: str, container: str) -> str:
        owner = (pod_uid, container)
        if owner not in by_owner:
            by_owner[owner] = next(marks)
        return by_owner[owner]

    if books.cpu is not None:
        for pod in books.cpu.pods:
            own = mark(pod.pod_uid, "")
            cpus.update((cpu, own) for cpu in CpuSet.parse(pod.cpus))
        for assigned in books.cpu.assignments:
            own = mark(assigned.pod_uid, assigned.container)
            cpus.update((cpu, own) for cpu in CpuSet.parse(assigned.cpus))
    if books.device is not None:
        for held in books.device.assignments:
            own = mark(held.pod_uid, held.container)
            for device in held.devices:
                devices.update(((device.resource, i), own) for i in device.ids)
    known = books.cpu is not None
    return Ownership(
        names={
            own: f"{books.pods.get(uid, uid)}{f'/{container}' if container else ''}"
            for (uid, container), own in by_owner.items()
        },
        cpus=cpus,
        devices=devices,
        shared=CpuSet.parse(books.cpu.default_cpus) if books.cpu is not None else NO_CPUS,
        reserved=CpuSet.parse(books.cpu.reserved_cpus) if books.cpu is not None else NO_CPUS,
        known=known,
    )


def _marks() -> Iterator[str]:
    """A, B, ... Z, AA, AB, ..."""
    for length in count(1):
        for letters in product(ascii_uppercase, repeat=length):
            yield "".join(letters)
