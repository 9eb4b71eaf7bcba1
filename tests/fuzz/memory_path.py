"""A directory tree in memory that is read like one on disk.

A tree of sysfs has dozens of files; writing them for each of a million inputs would leave no
time for reading them. Trees are never changed: a changed one shares what is the same with the
one before it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

Entry = bytes | dict[str, "Entry"] | int
"""A file, a directory, or the number of the error that reading it ends with."""

Directory = dict[str, Entry]


class MemoryPath:
    """What the discovery of a machine uses of a path."""

    __slots__ = ("_entry", "_path")

    def __init__(self, entry: Entry, path: str = "") -> None:
        self._entry = entry
        self._path = path

    def __truediv__(self, path: str) -> MemoryPath:
        entry = self._entry
        for part in path.split("/"):
            if isinstance(entry, dict):
                entry = entry.get(part, errno.ENOENT)
            elif isinstance(entry, bytes):
                entry = errno.ENOTDIR
        return MemoryPath(entry, f"{self._path}/{path}")

    def __str__(self) -> str:
        return self._path or "/"

    @property
    def name(self) -> str:
        """The last part."""
        return self._path.rpartition("/")[2]

    def is_dir(self) -> bool:
        """Whether a directory is there."""
        return isinstance(self._entry, dict)

    def read_text(self, encoding: str, errors: str) -> str:
        """The content of a file; OSError as from a disk."""
        if isinstance(self._entry, bytes):
            return self._entry.decode(encoding, errors)
        raise self._refused(errno.EISDIR)

    def iterdir(self) -> Iterator[MemoryPath]:
        """The entries of a directory; OSError as from a disk."""
        if not isinstance(self._entry, dict):
            raise self._refused(errno.ENOTDIR)
        for name, entry in self._entry.items():
            yield MemoryPath(entry, f"{self._path}/{name}")

    def _refused(self, otherwise: int) -> OSError:
        number = self._entry if isinstance(self._entry, int) else otherwise
        return OSError(number, os.strerror(number), str(self))


def as_path(tree: Directory) -> Path:
    """The tree, for a reader that takes a path."""
    return cast("Path", MemoryPath(tree))


def directory_of(files: Mapping[str, bytes]) -> Directory:
    """The tree of these files, by their paths."""
    tree: Directory = {}
    for path, content in files.items():
        tree = with_entry(tree, path.split("/"), content)
    return tree


def with_entry(tree: Directory, parts: Sequence[str], entry: Entry) -> Directory:
    """The tree with something at a path; a file that is in the way becomes a directory."""
    first, *rest = parts
    if rest:
        inner = tree.get(first)
        entry = with_entry(inner if isinstance(inner, dict) else {}, rest, entry)
    return {**tree, first: entry}


def without(tree: Directory, parts: Sequence[str]) -> Directory:
    """The tree without what is at a path, if there is anything."""
    first, *rest = parts
    if not rest:
        return {name: entry for name, entry in tree.items() if name != first}
    inner = tree.get(first)
    return {**tree, first: without(inner, rest)} if isinstance(inner, dict) else tree


def found_at(tree: Directory, parts: Sequence[str]) -> Entry | None:
    """What is at a path; None where nothing is."""
    entry: Entry | None = tree
    for part in parts:
        entry = entry.get(part) if isinstance(entry, dict) else None
    return entry
