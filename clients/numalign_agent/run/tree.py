"""A process and its descendants: whether it lives, and ending all of them together."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from numalign_agent.run.holder import Holder, Where, can_be_gone, where_of
from numalign_agent.runners.process.proc import boot_id


def here() -> Where:
    """This boot and this PID namespace."""
    return where_of(boot_id(), Path("/proc/self/ns/pid").stat().st_ino)


def is_gone(holder: Holder, where: Where) -> bool:
    """Whether the process of a holder has ended. What cannot be seen from here has not."""
    known = can_be_gone(holder, where)
    if known is not None:
        return known
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    stat = _stat(holder.pid)
    # Unreadable: processes of other users may be hidden.
    return stat is not None and (stat[0] in {"Z", "X"} or int(stat[19]) != holder.start)


def kill_below(pid: int) -> None:
    """Kill a process and all of its descendants; those that made themselves orphans escape."""
    stopped: set[int] = set()
    while True:
        found = _descendants(pid) - stopped
        if not found:
            break
        # A process that is stopped starts no other one.
        for each in found:
            _send(each, signal.SIGSTOP)
        stopped |= found
    for each in stopped:
        _send(each, signal.SIGKILL)


def _descendants(pid: int) -> set[int]:
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        process = waiting.pop()
        tasks = Path(f"/proc/{process}/task")
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for task in tasks.iterdir():
                waiting += map(int, (task / "children").read_text().split())
            found.add(process)
    return found


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
