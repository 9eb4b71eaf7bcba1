"""`numalign top` in a terminal: drawn again and again, until it is interrupted."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress

from tests.integration.served_node import ServedNode

ALTERNATE_SCREEN = b"\x1b[?1049h"


def test_it_is_drawn_again_until_it_is_interrupted(node: ServedNode) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "numalign.cli", "top", "--interval", "0.1"]
    env = {
        **os.environ,
        "NUMALIGN_SOCKET": str(node.directory / "run" / "admission.sock"),
        "TERM": "xterm",
        "COLUMNS": "120",
        "LINES": "50",
    }
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=env
    ) as top:
        os.close(theirs)
        try:
            drawn = b""
            deadline = time.monotonic() + 120
            while drawn.count(b"NUMA node 1") < 3:
                assert time.monotonic() < deadline, drawn
                assert top.poll() is None
                if select.select([ours], [], [], 1)[0]:
                    drawn += os.read(ours, 65536)
            top.send_signal(signal.SIGINT)
            # What nobody reads would hold it up.
            while top.poll() is None:
                assert time.monotonic() < deadline
                if select.select([ours], [], [], 0.1)[0]:
                    with suppress(OSError):  # its end is closed
                        os.read(ours, 65536)
            _, complaints = top.communicate(timeout=60)
        finally:
            top.kill()
            os.close(ours)
    assert (top.returncode, complaints) == (0, b"")
    assert ALTERNATE_SCREEN in drawn
    assert b"default/a/c" in drawn
