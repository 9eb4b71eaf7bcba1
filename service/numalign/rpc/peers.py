"""Who is at the other end of the connections of a socket, and who of them may not be.

The kernel refuses strangers when they connect (`access_list`). This looks at those who are
connected: somebody may have loosened the socket's mode since, or gone past it with a
capability. grpcio hides its sockets, but they are descriptors of this very process, so each
can be asked for its peer's credentials (SO_PEERCRED) and shut down. That costs a look at the
descriptors now and then, and a call nothing.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_CREDENTIALS = struct.Struct("iII")
_SO_PEERGROUPS = 59
# The most that Python asks a socket for; 256 groups.
_GROUPS_BYTES = 1024
_DESCRIPTORS = Path("/proc/self/fd")


@dataclass(frozen=True, slots=True)
class Peer:
    """A process as it was when it connected. `pid` is 0 if it cannot be seen from here."""

    pid: int
    uid: int
    gids: frozenset[int]


@dataclass(frozen=True, slots=True)
class Allowed:
    """Who may be connected: these users, and members of these groups."""

    uids: frozenset[int]
    gids: frozenset[int]

    def permits(self, peer: Peer) -> bool:
        """Whether the peer is one of them."""
        return peer.uid in self.uids or not self.gids.isdisjoint(peer.gids)


def allowed_by(
    mode: int, owner: int, group: int, uids: frozenset[int], gids: frozenset[int]
) -> Allowed | None:
    """Whom a socket with this mode, owner and group lets in, beside `uids` and `gids`.

    root and the service's own user belong to `uids`, as nothing can be kept from them. None:
    everybody.
    """
    if mode & stat.S_IWOTH:
        return None
    if mode & stat.S_IWUSR:
        uids |= {owner}
    if mode & stat.S_IWGRP:
        gids |= {group}
    return Allowed(uids, gids)


class PeerCheck:
    """Checks the connections of the server socket at `path`, each once."""

    def __init__(self, path: Path, allowed: Allowed) -> None:
        self._name = os.fsencode(path)
        self._allowed = allowed
        self._known: frozenset[int] = frozenset()

    def cut_off_strangers(self) -> list[Peer]:
        """Shut down every connection whose peer is not allowed; those peers.

        Raises OSError where the descriptors of this process cannot be read or duplicated.
        """
        strangers = []
        seen = set()
        for descriptor, inode in _sockets():
            seen.add(inode)
            if inode in self._known:
                continue
            # Another thread may close the descriptor and open another under its number; what
            # is asked and shut down is one duplicate.
            try:
                duplicate = os.dup(descriptor)
            except OSError as error:
                if error.errno != errno.EBADF:
                    raise
                continue
            with socket.socket(fileno=duplicate) as connection:
                peer = self._peer_of(connection)
                if peer is not None and not self._allowed.permits(peer):
                    strangers.append(peer)
                    connection.shutdown(socket.SHUT_RDWR)
        self._known = frozenset(seen)
        return strangers

    def _peer_of(self, connection: socket.socket) -> Peer | None:
        """The peer, if this is a connection that was accepted at our path."""
        try:
            if connection.family != socket.AF_UNIX or _text(connection) != self._name:
                return None
            connection.getpeername()
        except OSError:
            # Listening, or gone already.
            return None
        pid, uid, gid = credentials_of(connection)
        return Peer(pid, uid, frozenset({gid, *_groups_of(connection)}))


class Connection(Protocol):
    """A socket that can be asked about itself."""

    def getsockopt(self, level: int, option: int, size: int, /) -> bytes:
        """The bytes of an option."""


def credentials_of(connection: Connection) -> tuple[int, int, int]:
    """pid, uid and gid at the other end: of who connected, or of who listened there."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, gid = _CREDENTIALS.unpack(raw)
    return pid, uid, gid


def _sockets() -> Iterator[tuple[int, int]]:
    for entry in _DESCRIPTORS.iterdir():
        descriptor = int(entry.name)
        try:
            status = os.fstat(descriptor)
        except OSError:
            # The descriptor of this very listing, or one that was closed meanwhile.
            continue
        if stat.S_ISSOCK(status.st_mode):
            yield descriptor, status.st_ino


def _text(connection: socket.socket) -> bytes:
    name = connection.getsockname()
    return name if isinstance(name, bytes) else os.fsencode(name)


def _groups_of(connection: socket.socket) -> tuple[int, ...]:
    """Supplementary groups; none of a process with more than 256, which needs its own entry."""
    try:
        raw = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _GROUPS_BYTES)
    except OSError as error:
        if error.errno != errno.ERANGE:
            raise
        return ()
    return struct.unpack(f"{len(raw) // 4}I", raw)
