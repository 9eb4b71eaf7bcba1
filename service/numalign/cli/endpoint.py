"""Where a service is reached, and what users know the place by.

Separate from making connections: who only hands a place on needs no gRPC.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


def _no_trouble() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A Unix socket to connect to.

    `shown` is its name for users where it only leads to the real one. `trouble` says why the way
    behind it is closed, or nothing.
    """

    path: Path
    shown: str = ""
    trouble: Callable[[], str] = _no_trouble

    def __str__(self) -> str:
        return self.shown or str(self.path)
