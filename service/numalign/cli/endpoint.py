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

    Where it only leads to another host, `there` is the socket's path there, and `host` what users
    know that host by; `trouble` says why the way behind it is closed, or nothing.
    """

    path: Path
    there: str = ""
    host: str = ""
    trouble: Callable[[], str] = _no_trouble

    @property
    def socket(self) -> str:
        """The service's own socket, on its host."""
        return self.there or str(self.path)

    def __str__(self) -> str:
        return f"{self.socket} of {self.host}" if self.host else self.socket
