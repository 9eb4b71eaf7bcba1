"""The directory in which device plugins have their sockets: made ready at start (DEV-5).

Separate from the server that then listens in it. Removing a plugin's socket is how it is told
to register again.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from numalign.config.device_plugins import REGISTRY_SOCKET
from numalign.config.settings import SocketSettings
from numalign.errors import StartError
from numalign.rpc.socket_file import claim
from numalign.telemetry.logs import get_logger

_SELINUX = Path("/sys/fs/selinux/enforce")
_LABEL = b"system_u:object_r:container_file_t:s0\0"
_DEPRECATION = "DEPRECATION"
_STAGE = "device"

_log = get_logger("device-plugins")


def make_ready(directory: Path, sockets: SocketSettings, *, watched: bool) -> Path:
    """Make `directory` ready for plugins; the path of the registration socket.

    Every other socket in it is removed; files and directories stay. With `watched`, plugins
    find a file there which says that the plugin watcher is to be preferred (DEV-1). Raises
    ConfigError for a directory that cannot be used, and StartError where another server (a
    kubelet, perhaps) listens there, or a socket cannot be removed.
    """
    socket = directory / REGISTRY_SOCKET
    claim(socket, sockets)
    try:
        for entry in directory.iterdir():
            if stat.S_ISSOCK(entry.lstat().st_mode):
                entry.unlink(missing_ok=True)
        if watched:
            (directory / _DEPRECATION).touch()
    except OSError as error:
        raise StartError(_STAGE, f"device plugin directory {directory}: {error}") from error
    _label(directory)
    return socket


def _label(directory: Path) -> None:
    """Let containers into the directory where SELinux is on; a failure is only told (DEV-5)."""
    if not _SELINUX.exists():
        return
    try:
        os.setxattr(directory, "security.selinux", _LABEL)
    except OSError as error:
        _log.warning("no SELinux label", directory=str(directory), error=str(error))
