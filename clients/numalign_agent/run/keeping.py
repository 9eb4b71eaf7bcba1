"""The keeper as a process: forked from the front, out of reach of the terminal's signals."""

from __future__ import annotations

import os
import signal
import socket
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from numalign_agent.config.enforce import Enforce
from numalign_agent.run.command import Command
from numalign_agent.run.holder import Holder
from numalign_agent.run.pod import Asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a run is to be done, as the command line says it. `timeout` is in seconds.

    `cgroup_parent` None: as the configuration says.
    """

    socket: Path | None
    config: Path | None
    timeout: float
    owner: str
    enforce: Enforce
    cgroup_parent: PurePosixPath | None
    quiet: bool


def fork_keeper(
    asked: Asked, options: Options, command: Command, holder: Holder
) -> tuple[int, socket.socket]:
    """Fork it, from a process without threads: its pid, and the front's end of their socket."""
    own, keepers = socket.socketpair()
    pid = os.fork()
    if pid:
        keepers.close()
        return pid, own
    code = 1
    try:
        own.close()
        command.leave()
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        code = _keep(asked, options, holder, keepers)
    except BaseException:  # Whatever it is, the front's stack must not be unwound here.
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(code)


def _keep(asked: Asked, options: Options, holder: Holder, front: socket.socket) -> int:
    # All of this is the keeper's alone: the front stays small, and forks before threads are.
    import asyncio  # noqa: PLC0415
    import json  # noqa: PLC0415

    from numalign.cli.calls import sockets_of  # noqa: PLC0415
    from numalign.cli.failure import describe  # noqa: PLC0415
    from numalign.cli.options import Reach  # noqa: PLC0415
    from numalign.config.settings import Service  # noqa: PLC0415
    from numalign.errors import NumalignError  # noqa: PLC0415
    from numalign.telemetry.logs import configure_logs  # noqa: PLC0415
    from numalign_agent.cgroups.choice import choose  # noqa: PLC0415
    from numalign_agent.run.keeper import Keeper, Run  # noqa: PLC0415
    from numalign_agent.run.set_up import cgroup_settings  # noqa: PLC0415
    from numalign_agent.runners.placer import CannotPlace  # noqa: PLC0415

    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    configure_logs("console", "error")
    note = _say_nothing if options.quiet else _say
    try:
        reach = Reach(options.socket, options.config, options.timeout)
        admission = sockets_of(reach)[Service.ADMISSION].path
        settings = cgroup_settings(options.config, options.cgroup_parent)
        chosen = choose(options.enforce, settings)
    except (CannotPlace, NumalignError, OSError) as error:
        lines = describe(error) or (str(error),)
        front.sendall(json.dumps({"refused": lines}).encode() + b"\n")
        return 0
    run = Run(asked, holder, options.owner, admission, options.timeout)

    async def keep() -> bool:
        # The client belongs to the loop that it is made in.
        return await Keeper(run, chosen, _say, note).keep(front)

    return 0 if asyncio.run(keep()) else 1


def _say(line: str) -> None:
    sys.stderr.write(f"numalign: {line}\n")
    sys.stderr.flush()


def _say_nothing(line: str) -> None: ...
