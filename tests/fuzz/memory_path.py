"""A directory tree in memory that is read like one on disk.

A tree of sysfs has dozens of files; writing them for each of a million inputs would leave no
time for reading them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

Entry = bytes | dict[str, "Entry"] | None
"""A file, a directory, or a file that cannot be read."""


class MemoryPath:
    """What `machine.tree` uses of a path."""

    __slots__ = ("_entries", "_parts")

    def __init__(self, entries: Mapping[str, Entry], parts: tuple[str, ...] = ()) -> None:
        self._entries = entries
        self._parts = parts

    def __truediv__(self, path: str) -> MemoryPath:
        return MemoryPath(self._entries, (*self._parts, *path.split("/")))

    def __str__(self) -> str:
        return "/" + "/".join(self._parts)

    @property
    def name(self) -> str:
        """The last part."""
        return self._parts[-1]

    def read_text(self, encoding: str, errors: str) -> str:
        """The content of a file; OSError as from a disk."""
        entry = self._entry()
        if isinstance(entry, dict):
            raise self._refused(errno.EISDIR)
        if entry is None:
            raise self._refused(errno.EIO)
        return entry.decode(encoding, errors)

    def iterdir(self) -> Iterator[MemoryPath]:
        """The entries of a directory; OSError as from a disk."""
        entry = self._entry()
        if not isinstance(entry, dict):
            raise self._refused(errno.ENOTDIR)
        for name in entry:
            yield self / name

    def _entry(self) -> Entry:
        entry: Entry = cast("dict[str, Entry]", self._entries)
        for part in self._parts:
            if not isinstance(entry, dict):
                raise self._refused(errno.ENOTDIR)
            if part not in entry:
                raise self._refused(errno.ENOENT)
            entry = entry[part]
        return entry

    def _refused(self, number: int) -> OSError:
        return OSError(number, os.strerror(number), str(self))


def as_path(files: Mapping[str, bytes]) -> Path:
    """The tree of these files, for a reader that takes a path."""
    root: dict[str, Entry] = {}
    for name, content in files.items():
        *directories, last = name.split("/")
        place = root
        for directory in directories:
            inner = place.setdefault(directory, {})
            if not isinstance(inner, dict):
                break
            place = inner
        else:
            place.setdefault(last, content)
    return cast("Path", MemoryPath(root))
