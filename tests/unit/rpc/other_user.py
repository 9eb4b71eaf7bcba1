"""`python other_user.py <uid> <gid> <groups> <hold> <socket>...`: connecting as somebody else.

Prints as JSON, socket by socket, what became of the connection and of a health check on it.
With `hold` 1 it connects, reads a line from standard input, and only then makes the check.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc


def connected(path: str) -> str:
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(path)
        except OSError as error:
            return str(error.strerror)
    return "connected"


def check(path: str, hold: bool) -> str:
    with grpc.insecure_channel(f"unix:{path}") as channel:
        if hold:
            grpc.channel_ready_future(channel).result(timeout=60)
            sys.stdout.write("ready\n")
            sys.stdout.flush()
            sys.stdin.readline()
        try:
            health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=60)
        except grpc.RpcError as error:
            failed: Any = error
            return str(failed.code().name)
    return "OK"


def main() -> None:
    uid, gid, groups, hold, *paths = sys.argv[1:]
    os.setgroups([int(group) for group in groups.split(",") if group])
    os.setgid(int(gid))
    os.setuid(int(uid))
    found = {path: [connected(path), check(path, hold == "1")] for path in paths}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
