"""The file of a Unix socket: where it may be, who may connect, and who is there already.

Separate from the server: these are questions to the file system, asked before gRPC, which
would take a living server's socket away without asking.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from numalign.config.settings import SocketSettings
from numalign.errors import ConfigError, StartError

LONGEST_PATH = 107
"""Bytes that the kernel takes for the path of a Unix socket."""

_DIRECTORY_MODE = 0o750
_UNCHANGED = -1


def claim(path: Path, settings: SocketSettings) -> None:
    """Make sure that a server can listen at `path`: its directory is there, its place is free.

    A socket on which nobody answers is removed. Raises ConfigError naming the path where it
    can never work, and StartError where another server listens there now.
    """
    length = len(os.fsencode(path))
    if length > LONGEST_PATH:
        raise ConfigError(f"socket {path}: {length} bytes, at most {LONGEST_PATH} are possible")
    if not path.is_absolute():
        raise ConfigError(f"socket {path}: not an absolute path")
    directory = path.parent
    try:
        if not directory.is_dir():
            directory.mkdir(parents=True)
            directory.chmod(_DIRECTORY_MODE)
            give(directory, settings)
        _remove_stale(path)
    except OSError as error:
        raise ConfigError(f"socket {path}: {error.strerror}") from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise ConfigError(f"socket {path}: {os.strerror(errno.EACCES)}")


def give(path: Path, settings: SocketSettings) -> None:
    """Hand a file to the configured owner and group.

    Raises ConfigError naming an account that does not exist, or that may not be given to.
    """
    if settings.owner is None and settings.group is None:
        return
    owner, group = _user_id(settings.owner), _group_id(settings.group)
    try:
        os.chown(path, owner, group)
    except OSError as error:
        raise ConfigError(
            f"socket {path}: cannot give it to {owner}:{group}: {error.strerror}"
        ) from error


@contextmanager
def created_with(mode: int) -> Iterator[None]:
    """Make files with no more than `mode` inside of a `with` block.

    The umask belongs to the whole process, so nothing else may make files meanwhile.
    """
    before = os.umask(0o777 & ~mode)
    try:
        yield
    finally:
        os.umask(before)


def _user_id(owner: str | int | None) -> int:
    if not isinstance(owner, str):
        return _UNCHANGED if owner is None else owner
    try:
        return pwd.getpwnam(owner).pw_uid
    except KeyError as error:
        raise ConfigError(f"socket owner: no user {owner}") from error


def _group_id(group: str | int | None) -> int:
    if not isinstance(group, str):
        return _UNCHANGED if group is None else group
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError as error:
        raise ConfigError(f"socket group: no group {group}") from error


def _remove_stale(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise ConfigError(f"socket {path}: there is something that is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except (BlockingIOError, TimeoutError):
            # The queue of whoever listens is full: somebody is there, and busy.
            pass
    raise StartError("socket", f"socket {path}: another server answers there")
