"""Where the Admission service listens, as gRPC wants it written, and how a channel is opened."""

from __future__ import annotations

import os

DEFAULT_SOCKET = "/run/numalign/admission.sock"
"""The socket of a node where numalign runs as root with its default settings."""

SOCKET_VARIABLE = "NUMALIGN_SOCKET"
"""The environment variable that names another one."""

OPTIONS: tuple[tuple[str, int], ...] = (
    # A service that restarts is to be found again soon, not after gRPC's 1 to 120 seconds.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.enable_http_proxy", 0),
)
"""Options of every channel that a client opens."""


def default_target() -> str:
    """The gRPC target where no address is given: NUMALIGN_SOCKET's, else the default socket."""
    return target_of(os.environ.get(SOCKET_VARIABLE) or DEFAULT_SOCKET)


def target_of(address: str | os.PathLike[str]) -> str:
    """The gRPC target for `address`: a path, or a target such as `unix:///path` as it is.

    Raises ValueError for an empty address.
    """
    text = os.fspath(address)
    if not text:
        raise ValueError("the address of the Admission service is empty")
    if text.startswith("/"):
        return f"unix://{text}"
    if ":" in text:
        return text
    return f"unix://{os.path.abspath(text)}"  # noqa: PTH100 - pathlib costs a client's start
