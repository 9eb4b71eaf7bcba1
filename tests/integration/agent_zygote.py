"""Starts agents and services for crash tests: one process that has imported both, and forks.

See `zygote`, which does the same for services alone. Reads a line `{"what": "agent" or "all",
"config": PATH, "plan": PATH, "log": PATH}` and answers with the pid. The agent's clocks go
faster than they do on a node, so that a test need not wait for its housekeeping.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from tests.integration import agent_kill_points, kill_points
from tests.integration.zygote import IMPORTED

from numalign.process.serve import serve
from numalign_agent.loop import sync_loop
from numalign_agent.pleg import generator
from numalign_agent.process import run_agent

ALL = (IMPORTED, run_agent)
"""What is imported when it is called; here already, so that a fork has it."""


def main() -> None:
    """Serve requests until there are no more."""
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
    """Fork one process; the pid."""
    pid = os.fork()
    if pid:
        return pid
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    config, plan = Path(request["config"]), Path(request["plan"])
    if request["what"] == "agent":
        agent_kill_points.install(plan)
        sync_loop.SYNC_SECONDS = 0.1
        sync_loop.HOUSEKEEPING_SECONDS = 0.2
        generator.EVERY_SECONDS = 0.2
        code = run_agent(config, {})
    else:
        kill_points.install(plan)
        code = serve(None, config)
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
