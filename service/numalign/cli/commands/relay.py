"""`numalign relay`: standard input and output as a connection to a service of this node.

What `--node` of other commands runs in the pod. Threads and no event loop: it starts at each
connection, and only carries bytes.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from pathlib import Path

import click

from numalign.cli.calls import sockets_of
from numalign.cli.options import current_reach, examples, reach_options
from numalign.cli.remote.greeting import Greeting, greeting_line
from numalign.cli.verdicts import Exit
from numalign.config.settings import Service

_PIECE = 1 << 16


@click.command(
    epilog=examples(
        "kubectl exec -i -n numalign-system numalign-x7k2p -- numalign relay admission "
        "--config /etc/numalign/config.yaml"
    )
)
@click.argument("service", type=click.Choice([service.value for service in Service]))
@reach_options
def relay(service: str) -> None:
    """Make standard input and output a connection to a service of this node.

    Other commands run it in a node's pod for --node. It writes a line about the services of the
    node, and then carries bytes until one side closes.
    """
    endpoints = sockets_of(current_reach())
    sockets = {known: str(endpoint) for known, endpoint in endpoints.items()}
    out = sys.stdout.fileno()
    with socket.socket(socket.AF_UNIX) as link:
        error = _connect(link, Path(sockets.get(Service(service), "")))
        _write(out, greeting_line(Greeting(sockets=sockets, error=error)))
        if error:
            click.get_current_context().exit(Exit.ERROR)
        # A thread that waits for input must not keep the process when the service has closed.
        threading.Thread(target=_forward, args=(sys.stdin.fileno(), link), daemon=True).start()
        while piece := link.recv(_PIECE):
            _write(out, piece)


def _connect(link: socket.socket, path: Path) -> str:
    """Connect, or say in the system's word why not."""
    if path == Path():
        return "the configuration has no such service"
    try:
        link.connect(str(path))
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _forward(source: int, link: socket.socket) -> None:
    try:
        while piece := os.read(source, _PIECE):
            link.sendall(piece)
        link.shutdown(socket.SHUT_WR)
    except OSError:
        return  # the service has closed: the other direction sees it, too


def _write(out: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(out, view) :]
