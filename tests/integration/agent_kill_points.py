"""Places at which an agent of a crash test can be made to die, around unchanged product code.

`install` wraps functions that a pod passes through. Each place asks a plan file whether this is
the moment: `<place> <count>` kills the process, as SIGKILL does, when the place is reached for
the `count`-th time. Tests write the file before they start the agent.
"""

from __future__ import annotations

import functools
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numalign_agent.admitting.calls import AdmissionCalls
from numalign_agent.housekeeping.housekeeping import Housekeeping
from numalign_agent.journal.journal import Journal
from numalign_agent.runners.process.launcher import Launcher
from numalign_agent.runners.process.runner import ProcessRunner

WRAPPED: tuple[tuple[type, str, str], ...] = (
    (AdmissionCalls, "admit", "admit"),
    (AdmissionCalls, "admit_together", "together"),
    (AdmissionCalls, "prepare", "prepare"),
    (AdmissionCalls, "add_container", "add"),
    (AdmissionCalls, "release", "release"),
    (AdmissionCalls, "reconcile", "reconcile"),
    (Housekeeping, "clean", "clean"),
    (Journal, "decided", "decided"),
    (Launcher, "launch", "launch"),
    (ProcessRunner, "create_container", "create"),
    (ProcessRunner, "stop_container", "stop"),
    (ProcessRunner, "remove_container", "remove"),
)

PLACES = tuple(f"{name}.{side}" for _, _, name in WRAPPED for side in ("entered", "done"))


def install(plan: Path) -> None:
    """Wrap the functions, before any of their objects is made."""
    hits: Counter[str] = Counter()

    def reached(place: str) -> None:
        try:
            wanted, count = plan.read_text().split()
        except FileNotFoundError:
            return
        hits[place] += 1
        if wanted == place and hits[place] == int(count):
            os.kill(os.getpid(), signal.SIGKILL)

    for owner, name, place in WRAPPED:
        _around(owner, name, place, reached)


def _around(owner: Any, name: str, place: str, reached: Callable[[str], None]) -> None:
    inner = getattr(owner, name)

    @functools.wraps(inner)
    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        reached(f"{place}.entered")
        result = await inner(*args, **kwargs)
        reached(f"{place}.done")
        return result

    setattr(owner, name, wrapped)
