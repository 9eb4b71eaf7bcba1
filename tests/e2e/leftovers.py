"""What a test leaves behind whose process was killed: its containerd, shims, pods and cgroups.

A runtime and its pods are meant to outlive who started them, so they cannot be made to end with
the test. Each process says by a variable, and each cgroup by its name, whose it is; the next run
removes those of processes that are gone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

OWNER = "NUMALIGN_E2E_OWNER"
"""The variable with the id of the test process; shims have it from their containerd."""

_PREFIX = "numalign-e2e-"
_SECONDS = 10.0


def cgroup_of(owner: int) -> str:
    """The path of the cgroup that has the pods of a test process, from the root."""
    return f"/{_PREFIX}{owner}"


def remove_leftovers(cgroups: Path, proc: Path = Path("/proc")) -> None:
    """Remove what was left behind by test processes that are gone."""
    for owner in sorted({*_of_processes(proc), *_of_cgroups(cgroups)}):
        if not (proc / str(owner)).exists():
            remove_leftovers_of(owner, cgroups, proc)


def remove_leftovers_of(owner: int, cgroups: Path, proc: Path = Path("/proc")) -> None:
    """End the processes of one test process, and remove its cgroups."""
    deadline = time.monotonic() + _SECONDS
    while pids := {*_marked(owner, proc), *_in_cgroups(owner, cgroups)}:
        if 0 in pids or time.monotonic() > deadline:
            # Processes of another pid namespace, where the owner may well be; or stuck ones.
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    for controller in _controllers(cgroups):
        remove_cgroups(controller / cgroup_of(owner).strip("/"))


def remove_cgroups(path: Path) -> None:
    """Remove a cgroup and those below it, as far as they are empty."""
    if not path.is_dir():
        return
    for below in sorted(path.rglob("*"), reverse=True):
        if below.is_dir():
            with contextlib.suppress(OSError):
                below.rmdir()
    with contextlib.suppress(OSError):
        path.rmdir()


def _controllers(cgroups: Path) -> tuple[Path, ...]:
    """The roots of all hierarchies: of version 2 the directory itself."""
    return (cgroups, *cgroups.glob("*"))


def _of_processes(proc: Path) -> Iterator[int]:
    for environ in proc.glob("[0-9]*/environ"):
        owner = _owner(environ)
        if owner is not None:
            yield owner


def _of_cgroups(cgroups: Path) -> Iterator[int]:
    for controller in _controllers(cgroups):
        for path in controller.glob(f"{_PREFIX}*"):
            number = path.name.removeprefix(_PREFIX)
            if number.isdecimal():
                yield int(number)


def _marked(owner: int, proc: Path) -> Iterator[int]:
    """Processes that say that they are of this test; one that has ended has no environment."""
    for environ in proc.glob("[0-9]*/environ"):
        if _owner(environ) == owner:
            yield int(environ.parent.name)


def _in_cgroups(owner: int, cgroups: Path) -> Iterator[int]:
    for controller in _controllers(cgroups):
        for procs in (controller / cgroup_of(owner).strip("/")).rglob("cgroup.procs"):
            with contextlib.suppress(OSError):  # it was removed meanwhile
                yield from map(int, procs.read_text(encoding="ascii").split())


def _owner(environ: Path) -> int | None:
    try:
        variables = environ.read_bytes().split(b"\0")
    except OSError:  # it has ended, or is somebody else's
        return None
    name = f"{OWNER}=".encode()
    values = [entry.removeprefix(name) for entry in variables if entry.startswith(name)]
    return int(values[0]) if values and values[0].isdigit() else None
