"""Naming a process so that it cannot be taken for a later one with the same number."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from numalign_agent.runners.process.shim import start_time


def boot_id(root: Path = Path("/")) -> str:
    """Changes with every boot of the machine."""
    return (root / "proc/sys/kernel/random/boot_id").read_text().strip()


def open_process(pid: int, start: int) -> int | None:
    """A pidfd of the process that has this pid and began at `start`; None if it is gone."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    try:
        same = start_time(pid) == start
    except OSError:
        # It ended between the two.
        same = False
    if not same:
        os.close(descriptor)
        return None
    return descriptor


def send(descriptor: int, number: signal.Signals) -> None:
    """Send a signal to the process of a pidfd; one that has ended is passed over."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(descriptor, number)
