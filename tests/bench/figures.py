"""One measured number and what it ought to be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A number in `unit`. With a floor, `at_most` is a multiple of it; None is no target."""

    name: str
    unit: str
    value: float
    floor: float | None = None
    at_most: float | None = None

    @property
    def ratio(self) -> float | None:
        """How many floors it is."""
        return None if self.floor is None else self.value / self.floor

    @property
    def within(self) -> bool | None:
        """Whether the target is met; None without one."""
        if self.at_most is None:
            return None
        return (self.value if self.ratio is None else self.ratio) <= self.at_most

    def as_row(self) -> tuple[str, ...]:
        """For a table: name, value, floor, ratio, target, verdict."""
        ratio = self.ratio
        if self.at_most is None:
            target = ""
        elif ratio is None:
            target = f"{self.at_most:g} {self.unit}"
        else:
            target = f"{self.at_most:g} x"
        return (
            self.name,
            f"{self.value:.2f} {self.unit}",
            "" if self.floor is None else f"{self.floor:.2f} {self.unit}",
            "" if ratio is None else f"{ratio:.2f}",
            target,
            {None: "", True: "ok", False: "over"}[self.within],
        )

    def as_json(self) -> dict[str, object]:
        """For a file."""
        return {
            "name": self.name,
            "unit": self.unit,
            "value": self.value,
            "floor": self.floor,
            "ratio": self.ratio,
            "at_most": self.at_most,
            "within": self.within,
        }
