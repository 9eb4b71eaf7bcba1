"""How long to wait before what failed is tried again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Backoff:
    """Doubles from `first` to `longest` seconds with every failure; a success begins anew."""

    first: float
    longest: float
    _next: float = 0.0

    def failed(self) -> float:
        """Seconds to wait after one more failure."""
        wait = self._next or self.first
        self._next = min(self.longest, wait * 2)
        return wait

    def succeeded(self) -> None:
        """Begin anew."""
        self._next = 0.0
