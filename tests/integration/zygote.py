"""Starts services for crash tests: one process that has imported everything, and forks.

Separate from the tests, because a process with gRPC's threads must not fork, and because two
hundred restarts that import everything anew would take minutes. What is forked is a process
like any other: its own sockets, state files and locks, and it dies by SIGKILL.

Reads a line `{"service": NAME or null, "config": PATH, "plan": PATH or null, "log": PATH, "uptime":
SECONDS}` from standard input and answers with the pid. At the end of its input it ends what it
started.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.integration import kill_points
from tests.integration.uptime import add_uptime

from numalign.config.settings import Service
from numalign.process.node import Node
from numalign.process.serve import serve
from numalign.process.single import open_part
from numalign.telemetry.tracing import wants_tracing

IMPORTED = (Node, open_part)
"""What `serve` imports when it is called; here already, so that a fork has it."""


def main() -> None:
    """Serve requests until there are no more."""
    if wants_tracing(os.environ):
        import_module("numalign.telemetry.otel_tracer")
    # What is there is shared with every process that is forked, until one of them touches it.
    gc.collect()
    gc.freeze()
    children: set[int] = set()
    for line in sys.stdin:
        children = {pid for pid in children if os.waitpid(pid, os.WNOHANG)[0] == 0}
        pid = start(json.loads(line))
        children.add(pid)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
    for pid in children:
        if os.waitpid(pid, os.WNOHANG)[0] == 0:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def start(request: dict[str, Any]) -> int:
    """Fork one service; the pid."""
    pid = os.fork()
    if pid:
        return pid
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    if request["uptime"]:
        add_uptime(request["uptime"])
    if request["plan"] is not None:
        kill_points.install(Path(request["plan"]))
    service = request["service"]
    code = serve(None if service is None else Service(service), Path(request["config"]))
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
