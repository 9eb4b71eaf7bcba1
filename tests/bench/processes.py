"""Starting and ending the processes that are measured."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from numalign.rpc.channel import socket_target

ROOT = Path(__file__).parents[2]
WAIT_SECONDS = 60.0
_SERVE = (
    "import sys; from pathlib import Path; from numalign.config.settings import Service;"
    " from numalign.process.serve import serve;"
    " sys.exit(serve(None if sys.argv[1] == 'all' else Service(sys.argv[1]), Path(sys.argv[2])))"
)


class Unmeasurable(Exception):
    """What is to be measured does not run."""


@contextmanager
def running(commands: dict[str, list[str]], log: Path) -> Iterator[dict[str, int]]:
    """Processes by name while a `with` block lasts; their pids.

    They see no variable of OpenTelemetry, so that they export nothing.
    """
    started: dict[str, subprocess.Popen[bytes]] = {}
    seen = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    with log.open("ab") as output:
        try:
            for name, command in commands.items():
                started[name] = subprocess.Popen(
                    command, stdout=output, stderr=output, cwd=ROOT, env=seen
                )
            yield {name: process.pid for name, process in started.items()}
        finally:
            for process in started.values():
                process.terminate()
            for process in started.values():
                process.wait(WAIT_SECONDS)


def floor_command(name: str, directory: Path) -> list[str]:
    """How to start one process of the floor."""
    return [sys.executable, "-m", "tests.bench.floor", name, str(directory)]


def service_command(name: str, config: Path) -> list[str]:
    """How to start one service, or `all`."""
    return [sys.executable, "-c", _SERVE, name, str(config)]


def until_listening(paths: list[Path], log: Path) -> None:
    """Wait until somebody listens at every path. Raises Unmeasurable with the log."""
    deadline = time.monotonic() + WAIT_SECONDS
    for path in paths:
        with grpc.insecure_channel(
            socket_target(path), options=[("grpc.initial_reconnect_backoff_ms", 20)]
        ) as channel:
            try:
                grpc.channel_ready_future(channel).result(deadline - time.monotonic())
            except grpc.FutureTimeoutError:
                raise Unmeasurable(f"nobody listens at {path}:\n{log.read_text()}") from None


def until_serving(paths: list[Path], log: Path) -> None:
    """Wait until health says SERVING at every path. Raises Unmeasurable with the log."""
    deadline = time.monotonic() + WAIT_SECONDS
    for path in paths:
        while not _serving(path):
            if time.monotonic() > deadline:
                raise Unmeasurable(f"nobody serves at {path}:\n{log.read_text()}")
            time.sleep(0.005)


def _serving(path: Path) -> bool:
    if not path.exists():
        return False
    with grpc.insecure_channel(socket_target(path)) as channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(), timeout=1
            )
        except grpc.RpcError:
            return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)
