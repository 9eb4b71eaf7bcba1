"""The file of a Unix socket: where it may be, who may connect, and who is there already.

Separate from the server: these are questions to the file system, asked before gRPC, which
would take a living server's socket away without asking.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from numalign.config.settings import SocketSettings
from numalign.errors import ConfigError, StartError
from numalign.rpc.access_list import let_through, restrict_socket
from numalign.rpc.accounts import accounts_of

LONGEST_PATH = 107
"""Bytes that the kernel takes for the path of a Unix socket."""

_DIRECTORY_MODE = 0o750


def claim(path: Path, settings: SocketSettings) -> None:
    """Make sure that a server can listen at `path`: its directory is there, its place is free.

    A socket on which nobody answers is removed. Raises ConfigError naming the path where it
    can never work or where any user could put another socket in its place, and StartError
    where another server listens there now.
    """
    length = len(os.fsencode(path))
    if length > LONGEST_PATH:
        raise ConfigError(f"socket {path}: {length} bytes, at most {LONGEST_PATH} are possible")
    if not path.is_absolute():
        raise ConfigError(f"socket {path}: not an absolute path")
    directory = path.parent
    try:
        if not directory.is_dir() and _made(directory):
            directory.chmod(_DIRECTORY_MODE)
            give(directory, settings)
        if directory.stat().st_mode & (stat.S_IWOTH | stat.S_ISVTX) == stat.S_IWOTH:
            raise ConfigError(f"socket {path}: every user may replace what is in {directory}")
        let_through(directory, *_allowed(settings))
        _remove_stale(path)
    except OSError as error:
        raise ConfigError(f"socket {path}: {error.strerror}") from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise ConfigError(f"socket {path}: {os.strerror(errno.EACCES)}")


def guard(path: Path, settings: SocketSettings) -> None:
    """Let those connect to a new socket whom the settings name, and nobody else.

    Raises ConfigError naming an account that does not exist, or a list that cannot be kept.
    """
    give(path, settings)
    restrict_socket(path, settings.mode, *_allowed(settings))


def give(path: Path, settings: SocketSettings) -> None:
    """Hand a file to the configured owner and group.

    Raises ConfigError naming an account that does not exist, or that may not be given to.
    """
    if settings.owner is None and settings.group is None:
        return
    accounts = accounts_of(settings)
    try:
        os.chown(path, accounts.owner, accounts.group)
    except OSError as error:
        raise ConfigError(
            f"socket {path}: cannot give it to {accounts.owner}:{accounts.group}: {error.strerror}"
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


def _made(directory: Path) -> bool:
    """Make the directory; False where another service that starts just now was first."""
    try:
        directory.mkdir(mode=_DIRECTORY_MODE, parents=True)
    except FileExistsError:
        if not directory.is_dir():
            raise
        return False
    return True


def _allowed(settings: SocketSettings) -> tuple[tuple[int, ...], tuple[int, ...]]:
    accounts = accounts_of(settings)
    return accounts.uids, accounts.gids


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
    raise StartError("socket", f"{path}: another server answers there")
