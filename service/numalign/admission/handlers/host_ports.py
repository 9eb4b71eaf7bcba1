"""Whether the host ports that a pod asks for are free (PRED-14)."""

from __future__ import annotations

from collections.abc import Iterable

from numalign.admission.handlers.admit_pod import HostPort

_ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - the address that stands for all, nothing is bound to it


def in_conflict(wanted: Iterable[HostPort], used: Iterable[HostPort]) -> bool:
    """Whether a wanted port is in use: same protocol and port, and overlapping addresses."""
    taken: dict[tuple[str, int], set[str]] = {}
    for port in used:
        taken.setdefault((port.protocol, port.port), set()).add(port.ip)
    for port in wanted:
        addresses = taken.get((port.protocol, port.port))
        if addresses and (
            port.ip == _ANY_ADDRESS or port.ip in addresses or _ANY_ADDRESS in addresses
        ):
            return True
    return False
