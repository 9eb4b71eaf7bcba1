"""Sets of logical CPUs, and the text form that the kubelet and the kernel share.

Held as one big integer: union, intersection and difference of the sets of a machine with
hundreds of CPUs are single operations. Rules CPU-30 and the CPU set text of the terms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from numalign.model.quoting import quoted

_INTEGER = re.compile(r"[+-]?[0-9]+\Z", re.ASCII)
_LARGEST_ID = (1 << 20) - 1


class CpuSetSyntaxError(ValueError):
    """A CPU list that cannot be parsed; the message is the kubelet's (CPU-30)."""


@dataclass(frozen=True, slots=True)
class CpuSet:
    """An immutable set of CPU ids. Bit i of `bits` stands for CPU i."""

    bits: int = 0

    @classmethod
    def of(cls, cpus: Iterable[int]) -> CpuSet:
        """The set of `cpus`, which are non-negative ids."""
        bits = 0
        for cpu in cpus:
            bits |= 1 << cpu
        return cls(bits)

    @classmethod
    def parse(cls, text: str) -> CpuSet:
        """Parse a CPU list such as `0-3,8`; the empty text is the empty set.

        Raises CpuSetSyntaxError with the kubelet's message (CPU-30). An id above 1048575 is
        out of range: no kernel numbers CPUs so high, and a set is as long as its largest id.
        """
        bits = 0
        if text == "":
            return cls(0)
        for part in text.split(","):
            first, dash, last = part.partition("-")
            start = _parse_id(first)
            if not dash:
                bits |= 1 << start
                continue
            end = _parse_id(last)
            if start > end:
                raise CpuSetSyntaxError(f'invalid range "{part}" ({start} > {end})')
            bits |= (1 << (end + 1)) - (1 << start)
        return cls(bits)

    def __str__(self) -> str:
        """Canonical text: ascending, runs joined as `a-b`."""
        runs = []
        bits = self.bits
        while bits:
            start = (bits & -bits).bit_length() - 1
            run = ~(bits >> start)
            end = start + (run & -run).bit_length() - 2
            runs.append(str(start) if start == end else f"{start}-{end}")
            bits &= -1 << (end + 1)
        return ",".join(runs)

    def __len__(self) -> int:
        return self.bits.bit_count()

    def __bool__(self) -> bool:
        return self.bits != 0

    def __iter__(self) -> Iterator[int]:
        """The CPU ids, ascending."""
        bits = self.bits
        while bits:
            low = bits & -bits
            yield low.bit_length() - 1
            bits ^= low

    def __contains__(self, cpu: int) -> bool:
        return bool(self.bits >> cpu & 1)

    def __or__(self, other: CpuSet) -> CpuSet:
        return CpuSet(self.bits | other.bits)

    def __and__(self, other: CpuSet) -> CpuSet:
        return CpuSet(self.bits & other.bits)

    def __sub__(self, other: CpuSet) -> CpuSet:
        return CpuSet(self.bits & ~other.bits)

    def isdisjoint(self, other: CpuSet) -> bool:
        """Whether the two sets share no CPU."""
        return not self.bits & other.bits

    def issubset(self, other: CpuSet) -> bool:
        """Whether every CPU of this set is in `other`."""
        return not self.bits & ~other.bits


NO_CPUS = CpuSet(0)


def _parse_id(piece: str) -> int:
    if not _INTEGER.match(piece):
        raise CpuSetSyntaxError(f"strconv.Atoi: parsing {quoted(piece)}: invalid syntax")
    digits = piece.lstrip("+-").lstrip("0") or "0"
    if len(digits) > len(str(_LARGEST_ID)) or int(digits) > _LARGEST_ID:
        raise CpuSetSyntaxError(f"strconv.Atoi: parsing {quoted(piece)}: value out of range")
    return -int(digits) if piece[0] == "-" else int(digits)
