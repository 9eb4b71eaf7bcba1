"""Where the Admission service listens, as gRPC wants it written, and how a channel is opened."""

from __future__ import annotations

import os
from collections.abc import Mapping

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
    """The gRPC target where no address is given: NUMALIGN_SOCKET's, else the default socket.

    Raises ValueError where the environment names no place for a socket.
    """
    return target_of(default_socket(os.environ, is_root=os.geteuid() == 0))


def default_socket(env: Mapping[str, str], *, is_root: bool) -> str:
    """NUMALIGN_SOCKET's address, else where numalign listens by default for this user.

    It is where the `numalign` command looks (numalign.config.defaults, which would cost a client's
    start). Raises ValueError where neither HOME nor an XDG directory is set.
    """
    given = env.get(SOCKET_VARIABLE)
    if given or is_root:
        return given or DEFAULT_SOCKET
    runtime = env.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/"):
        return f"{runtime}/numalign/admission.sock"
    state, home = env.get("XDG_STATE_HOME", ""), env.get("HOME", "")
    if not state.startswith("/") and home.startswith("/"):
        state = f"{home}/.local/state"
    if not state.startswith("/"):
        raise ValueError(
            f"the address of the Admission service must be given, or {SOCKET_VARIABLE} set: "
            "neither HOME nor an XDG directory is"
        )
    return f"{state}/numalign/run/admission.sock"


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
