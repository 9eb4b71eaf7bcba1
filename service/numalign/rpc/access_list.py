"""Access control entries of a socket and its directory: who may connect beside owner and group.

The kernel asks for write permission on a socket when somebody connects, so an entry for a user
or a group is a check of the peer's credentials that no connection gets around and no call pays
for. Separate from `socket_file`, which knows where sockets are; this knows the kernel's format.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

from numalign.errors import ConfigError

ATTRIBUTE = "system.posix_acl_access"
"""The extended attribute that holds the access list of a file."""

READ_WRITE = 6
"""What an entry of a socket allows: to connect."""

SEARCH = 1
"""What an entry of a directory allows: to reach a socket of a known name."""

_VERSION = 2
_HEADER = struct.Struct("<I")
_ENTRY = struct.Struct("<HHI")
_OWNER, _USER, _OWNING_GROUP, _GROUP, _MASK, _OTHERS = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
_NOBODY = 0xFFFFFFFF
_ABSENT = (errno.ENODATA, errno.ENOTSUP)

Named = Mapping[tuple[int, int], int]
"""Permission bits by kind (user or group) and number."""


def packed(mode: int, named: Named) -> bytes:
    """The list that says what `mode` does, and the named entries, as the kernel stores it.

    `named` must not be empty: a list of nothing but the mode is no list.
    """
    owning_group = mode >> 3 & 7
    mask = owning_group
    for permission in named.values():
        mask |= permission
    entries = [(_OWNER, mode >> 6 & 7, _NOBODY)]
    entries += [(kind, bits, i) for (kind, i), bits in sorted(named.items()) if kind == _USER]
    entries.append((_OWNING_GROUP, owning_group, _NOBODY))
    entries += [(kind, bits, i) for (kind, i), bits in sorted(named.items()) if kind == _GROUP]
    entries += [(_MASK, mask, _NOBODY), (_OTHERS, mode & 7, _NOBODY)]
    return _HEADER.pack(_VERSION) + b"".join(_ENTRY.pack(*entry) for entry in entries)


def unpacked(data: bytes) -> tuple[int, dict[tuple[int, int], int]]:
    """The permission of the owning group, and the named entries, of a stored list."""
    owning_group = 0
    named: dict[tuple[int, int], int] = {}
    for kind, bits, number in _ENTRY.iter_unpack(data[_HEADER.size :]):
        if kind in {_USER, _GROUP}:
            named[kind, number] = bits
        elif kind == _OWNING_GROUP:
            owning_group = bits
    return owning_group, named


def restrict_socket(path: Path, mode: int, uids: Iterable[int], gids: Iterable[int]) -> None:
    """Let owner, group and others connect to a socket as `mode` says, and these accounts.

    Entries that the socket inherited from its directory are taken away. Raises ConfigError
    where the file system keeps no access lists and one is needed.
    """
    named = _named(uids, gids, READ_WRITE)
    if not named:
        try:
            os.removexattr(path, ATTRIBUTE, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _ABSENT:
                raise
        path.chmod(mode)
        return
    _store(path, packed(mode, named))


def let_through(directory: Path, uids: Iterable[int], gids: Iterable[int]) -> None:
    """Let these accounts reach what is in a directory, in addition to who can already.

    A directory that everybody may search is left alone.
    """
    named = _named(uids, gids, SEARCH)
    mode = directory.stat().st_mode
    if not named or mode & stat.S_IXOTH:
        return
    owning_group = mode >> 3 & 7
    before: dict[tuple[int, int], int] = {}
    try:
        owning_group, before = unpacked(os.getxattr(directory, ATTRIBUTE))
    except OSError as error:
        if error.errno not in _ABSENT:
            raise
    wanted = before | {key: before.get(key, 0) | bits for key, bits in named.items()}
    if wanted != before:
        _store(directory, packed(mode & 0o707 | owning_group << 3, wanted))


def _named(uids: Iterable[int], gids: Iterable[int], bits: int) -> dict[tuple[int, int], int]:
    return {(_USER, uid): bits for uid in uids} | {(_GROUP, gid): bits for gid in gids}


def _store(path: Path, data: bytes) -> None:
    try:
        os.setxattr(path, ATTRIBUTE, data, follow_symlinks=False)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            raise ConfigError(
                f"socket {path}: numalign.sockets.allow needs a file system with access lists"
            ) from error
        raise ConfigError(f"socket {path}: cannot set who may use it: {error.strerror}") from error
