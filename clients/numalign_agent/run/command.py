"""The command of a run: a child that waits at a gate, takes its place and becomes the command.

It is forked before anything is asked, since the pod is named after it.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from numalign_agent.runners.process.shim import start_time, take_place

CANNOT_RUN, NOT_FOUND, FAILED = 126, 127, 125
"""Exit codes, as other programs that run commands have them."""


@dataclass(frozen=True, slots=True)
class Start:
    """What opens the gate. `prefix` are words before the command, to bind its memory."""

    cgroup_procs: tuple[str, ...] = ()
    cpus: tuple[int, ...] | None = None
    environment: Mapping[str, str] | None = None
    prefix: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotExecuted:
    """Why the command did not come to be; `code` is what the run ends with."""

    code: int
    message: str


class Command:
    """The child. Use `fork`."""

    def __init__(self, pid: int, gate: int, failed: int) -> None:
        self.pid = pid
        self.start = start_time(pid)
        self._gate = gate
        self._failed = failed

    @classmethod
    def fork(cls, argv: Sequence[str]) -> Command:
        """Fork it, from a process without threads. Raises OSError."""
        gate_reader, gate_writer = os.pipe2(os.O_CLOEXEC)
        failed_reader, failed_writer = os.pipe2(os.O_CLOEXEC)
        pid = os.fork()
        if pid == 0:
            os.close(gate_writer)
            os.close(failed_reader)
            _become(argv, gate_reader, failed_writer)
        os.close(gate_reader)
        os.close(failed_writer)
        return cls(pid, gate_writer, failed_reader)

    def leave(self) -> None:
        """Let go of it in another process: that the front is gone must show at the gate."""
        os.close(self._gate)
        os.close(self._failed)

    def begin(self, start: Start) -> NotExecuted | None:
        """Open the gate and wait until the command executes; else why it does not."""
        with os.fdopen(self._gate, "w", encoding="utf-8") as gate:
            json.dump(
                {
                    "cgroup_procs": start.cgroup_procs,
                    "cpus": start.cpus,
                    "environment": dict(start.environment or {}),
                    "prefix": start.prefix,
                },
                gate,
            )
        with os.fdopen(self._failed, encoding="utf-8") as failed:
            text = failed.read()
        if not text:
            return None
        os.waitpid(self.pid, 0)
        code, _, message = text.partition(" ")
        return NotExecuted(int(code), message)

    def give_up(self) -> None:
        """End it before it executed anything."""
        os.close(self._gate)
        os.close(self._failed)
        os.waitpid(self.pid, 0)

    def ended(self) -> int | None:
        """The exit code of a command that has ended, 128 and the signal's number if by one."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0:
            return None
        if os.WIFSIGNALED(status):
            return 128 + os.WTERMSIG(status)
        return os.WEXITSTATUS(status)


def memory_prefix(mems: str) -> tuple[str, ...]:
    """The words that bind the memory of a command to NUMA nodes; empty without numactl."""
    numactl = shutil.which("numactl")
    return (numactl, f"--membind={mems}", "--") if numactl and mems else ()


def _become(argv: Sequence[str], gate: int, failed: int) -> None:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        # What Python ignores is not for the command.
        signal.signal(number, signal.SIG_DFL)
    code, step = FAILED, "the run"
    try:
        with os.fdopen(gate, encoding="utf-8") as opened:
            text = opened.read()
        if not text:
            os._exit(FAILED)
        start = json.loads(text)
        take_place(start["cgroup_procs"], start["cpus"])
        code, step = CANNOT_RUN, argv[0]
        words = [*start["prefix"], *argv]
        environment = {**os.environ, **start["environment"]}
        os.execvpe(words[0], words, environment)  # noqa: S606 - the user's own command
    except (OSError, ValueError) as error:
        if code == CANNOT_RUN and getattr(error, "errno", None) == errno.ENOENT:
            code = NOT_FOUND
        where = step if code != FAILED else getattr(error, "filename", None) or step
        why = getattr(error, "strerror", None) or str(error)
        os.write(failed, f"{code} {where}: {why}".encode())
    os._exit(code)
