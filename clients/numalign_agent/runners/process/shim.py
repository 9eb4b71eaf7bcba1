"""The parent of one container's process: waits for it and writes down how it ended.

A program of its own, started by the agent as `launcher`: for every line on its standard input,
which names a container's directory, it forks one shim. A shim goes on when the launcher and the
agent are gone, and ends with its container. Forking keeps a shim at a megabyte.

Only the standard library, and little of it: this is in memory once for every container.

Files of a container's directory:

    spec.json    what to execute, written by the agent before
    lock         held by the shim for its whole life
    running.json pid and start time of the process, written by the shim
    exited.json  how it ended, or why it never started; written once, the first one stands
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MORE_CPUS_THAN_THERE_ARE = 8192

NOT_STARTED = 128
"""The exit code of a container that could not be started."""


def main() -> None:
    """Fork a shim for every line of standard input; say on standard output how it went."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for line in sys.stdin:
        directory = line.rstrip("\n")
        middle = os.fork()
        if middle == 0:
            # A child that ends at once, so that the shim is nobody's child here.
            if os.fork() == 0:
                os.setsid()
                _shim(directory)
            os._exit(0)
        os.waitpid(middle, 0)


def _shim(directory: str) -> None:
    try:
        _run(directory)
    except FileNotFoundError:
        # The container was removed before it could be started.
        _answer(directory)
    except OSError as error:
        _write_once(directory, _not_started(f"{error.filename or directory}: {error.strerror}"))
        _answer(directory)
    os._exit(0)


def _run(directory: str) -> None:
    lock = os.open(os.path.join(directory, "lock"), os.O_RDWR | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_EX)
    if os.path.exists(os.path.join(directory, "exited.json")):
        # Whoever started it has given up meanwhile.
        _answer(directory)
        return
    with open(os.path.join(directory, "spec.json"), encoding="utf-8") as file:
        spec = json.load(file)
    reader, writer = os.pipe2(os.O_CLOEXEC)
    gate_reader, gate_writer = os.pipe2(os.O_CLOEXEC)
    child = os.fork()
    if child == 0:
        os.close(gate_writer)
        _become(spec, gate_reader, writer)
    os.close(writer)
    os.close(gate_reader)
    # The process is known on disk before it executes anything.
    _write(
        directory,
        "running.json",
        {"pid": child, "start": start_time(child), "shim": os.getpid(), "at": time.time()},
    )
    os.write(gate_writer, b".")
    os.close(gate_writer)
    failure = os.read(reader, 4096).decode(errors="replace")
    os.close(reader)
    if failure:
        os.waitpid(child, 0)
        _write_once(directory, _not_started(failure))
        _answer(directory)
        return
    _answer(directory)
    _leave_files()
    # Its number stays taken until it is waited for: the group can be ended safely before.
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    _kill_group(child)
    kill_groups(spec["cgroup_procs"])
    _write_once(directory, _ended(os.waitpid(child, 0)[1]))


def _become(spec: dict[str, Any], gate: int, failed: int) -> None:
    """Turn into the container's process; on trouble say what to `failed` and end."""
    step = "session"
    try:
        os.setsid()
        if not os.read(gate, 1):
            os._exit(NOT_STARTED)
        step = "place"
        take_place(spec["cgroup_procs"], spec["cpus"])
        step = f"working directory {spec['directory']}"
        os.chdir(spec["directory"])
        os.umask(0o022)
        step = "log files"
        _redirect(os.devnull, os.O_RDONLY, 0)
        _redirect(spec["stdout"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 1)
        _redirect(spec["stderr"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 2)
        # What Python ignores would be inherited.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        step = f"command {spec['argv'][0]}"
        os.execvpe(spec["argv"][0], spec["argv"], spec["environment"])
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        where = getattr(error, "filename", step) if step == "place" else step
        os.write(failed, f"{where}: {why}".encode()[:4096])
    os._exit(NOT_STARTED)


def take_place(cgroup_procs: list[str], cpus: list[int] | None) -> None:
    """Move this process where its container belongs. Raises OSError that names the place."""
    for path in cgroup_procs:
        with open(path, "w", encoding="ascii") as file:
            file.write("0")
    if cgroup_procs and cpus is None:
        # The group says where to run; what the agent itself was bound to would narrow that.
        os.sched_setaffinity(0, range(_MORE_CPUS_THAN_THERE_ARE))
    if cpus is not None:
        try:
            os.sched_setaffinity(0, cpus)
        except OSError as error:
            raise OSError(error.errno, error.strerror, f"CPUs {cpus}") from error
        missing = sorted(set(cpus) - os.sched_getaffinity(0))
        if missing:
            raise OSError(0, f"not on this machine: {missing}", f"CPUs {cpus}")


def _redirect(path: str, flags: int, target: int) -> None:
    descriptor = os.open(path, flags, 0o640)
    os.dup2(descriptor, target)
    os.close(descriptor)


def _kill_group(leader: int) -> None:
    """What a container has started ends with it."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        # Nobody is left, or only the leader itself, which has ended.
        return


def kill_groups(cgroup_procs: list[str]) -> None:
    """Kill what is left in control groups; kernels before 5.14 cannot."""
    for path in cgroup_procs:
        try:
            with open(os.path.join(os.path.dirname(path), "cgroup.kill"), "w") as file:
                file.write("1")
        except OSError:
            continue


def _ended(status: int) -> dict[str, Any]:
    by_signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    code = 128 + by_signal if by_signal else os.WEXITSTATUS(status)
    return {"code": code, "signal": by_signal, "at": time.time(), "failure": ""}


def _not_started(failure: str) -> dict[str, Any]:
    return {"code": NOT_STARTED, "signal": 0, "at": time.time(), "failure": failure}


def _write_once(directory: str, document: dict[str, Any]) -> None:
    if not os.path.exists(os.path.join(directory, "exited.json")):
        _write(directory, "exited.json", document)


def _write(directory: str, name: str, document: dict[str, Any]) -> None:
    """Write a file whole or not at all. On a full disk it is tried again: somebody waits for it."""
    path = os.path.join(directory, name)
    while True:
        try:
            with open(f"{path}.new", "w", encoding="utf-8") as file:
                json.dump(document, file)
            os.rename(f"{path}.new", path)
        except FileNotFoundError:
            # The directory is gone: nobody wants to know any more.
            return
        except OSError:
            time.sleep(1)
        else:
            return


def _answer(directory: str) -> None:
    """Tell the agent, if it is still there, that the files say how it went."""
    try:
        os.write(1, f"{directory}\n".encode())
    except OSError:
        return


def _leave_files() -> None:
    """Let go of the launcher's pipes, so that its end can be seen."""
    null = os.open(os.devnull, os.O_RDWR)
    for target in (0, 1, 2):
        os.dup2(null, target)
    os.close(null)


def start_time(pid: int) -> int:
    """When a process began, in clock ticks since the boot: with the pid it names the process.

    Raises OSError for a process that there is not.
    """
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])


if __name__ == "__main__":
    main()
