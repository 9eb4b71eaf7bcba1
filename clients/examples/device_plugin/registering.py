"""Becoming known to a kubelet, and noticing when it has to be done again.

The plugin's own socket is served already by then, since the kubelet calls back at once.
"""

from __future__ import annotations

from pathlib import Path

from grpc import aio

from numalign.kube.deviceplugin.v1beta1 import api_pb2 as dp
from numalign.kube.deviceplugin.v1beta1 import api_pb2_grpc as dp_grpc

VERSION = "v1beta1"
REGISTRY = "kubelet.sock"
_SECONDS = 15.0


class RegistrationFailed(Exception):
    """The kubelet is not there, or does not want this plugin."""


async def register(directory: Path, socket: Path, resource: str) -> None:
    """Call the kubelet that listens in `directory`. Raises RegistrationFailed."""
    async with aio.insecure_channel(f"unix:{directory / REGISTRY}") as channel:
        request = dp.RegisterRequest(version=VERSION, endpoint=socket.name, resource_name=resource)
        stub = dp_grpc.RegistrationStub(channel)
        try:
            await stub.Register(request, timeout=_SECONDS)
        except aio.AioRpcError as error:
            raise RegistrationFailed(error.details() or error.code().name) from error


def identity(path: Path) -> tuple[int, int] | None:
    """Tells a socket from a later one at the same path; None while there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


def remove(path: Path) -> None:
    """Remove a socket that an earlier run left behind."""
    path.unlink(missing_ok=True)
