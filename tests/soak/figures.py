"""What a soak counts and prints."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

MOST_SHOWN = 40


@dataclass
class Figures:
    """Counts of one soak.

    `injected` counts faults that were injected by name, and `left_out` says why others cannot
    be had on this machine; `faults` are sentences about what was wrong with the node afterwards.
    `memory` has, by process, the bytes held after warm-up and at the end.
    """

    seed: int
    admitted: int = 0
    answered: int = 0
    given_up: int = 0
    unwritten: int = 0
    reconciled: int = 0
    prepared: int = 0
    released_twice: int = 0
    stuck: int = 0
    judged: int = 0
    looked: int = 0
    seconds: float = 0.0
    injected: Counter[str] = field(default_factory=Counter)
    left_out: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    memory: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def lost(self) -> int:
        """Admissions that were answered and are gone."""
        return sum("is gone" in fault or "is not found" in fault for fault in self.faults)

    @property
    def doubled(self) -> int:
        """Resources that two pods hold, or that are held and free."""
        words = (" is held by ", " is shared", "released twice", "does not add up", "is counted")
        return sum(any(word in fault for word in words) for fault in self.faults)

    @property
    def growth(self) -> float:
        """The growth of the process that grew most, as a fraction."""
        return max((end / warm - 1.0 for warm, end in self.memory.values()), default=0.0)

    def lines(self) -> list[str]:
        """The figures as a table."""
        rows: list[tuple[str, object]] = [
            ("seed", self.seed),
            ("admissions", f"{self.admitted:,}"),
            ("calls answered", f"{self.answered:,}"),
            ("calls given up in the middle", f"{self.given_up:,}"),
            ("calls refused, state not writable", f"{self.unwritten:,}"),
            ("reconciliations", f"{self.reconciled:,}"),
            ("pods with claims prepared", f"{self.prepared:,}"),
            ("second releases refused", f"{self.released_twice:,}"),
            ("lost", self.lost),
            ("doubled", self.doubled),
            ("stuck past their deadline", self.stuck),
            ("other contradictions", len(self.faults) - self.lost - self.doubled),
            ("times the whole node was judged", f"{self.judged:,}"),
            ("looks at a provider's books under load", f"{self.looked:,}"),
            ("seconds", f"{self.seconds:.0f}"),
        ]
        rows += [(f"injected: {name}", count) for name, count in sorted(self.injected.items())]
        rows += [(f"left out: {name}", why) for name, why in self.left_out.items()]
        rows += [
            (f"memory of {name}", f"{warm / 2**20:.1f} MiB, then {end / 2**20:.1f} MiB")
            for name, (warm, end) in self.memory.items()
        ]
        if self.memory:
            rows.append(("memory growth after warm-up", f"{self.growth:.1%}"))
        table = [f"{name:<42} {value}" for name, value in rows]
        return table + [f"FAULT {fault}" for fault in self.faults[:MOST_SHOWN]]
