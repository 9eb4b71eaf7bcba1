"""The journal's files: two of them, of which the older one goes when the newer one is full.

Nothing depends on what they hold, so nothing is synced: a crash of the machine may cost the
last decisions, never more. What cannot be read at the end of a file is cut off. Blocking; the
journal calls it from a thread.
"""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from struct import Struct
from typing import BinaryIO

from google.protobuf.message import DecodeError

from numalign.errors import StateError
from numalign.store.process_lock import ProcessLock
from numalign.v1 import decisions_pb2 as dc

NEWER = "decisions.log"
OLDER = "decisions.log.1"
LOCK = "decisions.lock"

_MODE = 0o600
"""What was decided is for the services' own user, wherever the directory is."""

_HEAD = Struct("<II")
"""Length and CRC-32 of what follows."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an entry begins: in the older or the newer file, and at which byte."""

    older: bool
    position: int


@dataclass(frozen=True, slots=True)
class Kept:
    """An entry of the files, and where it is."""

    entry: dc.JournalEntry
    place: Place


@dataclass(frozen=True, slots=True)
class Written:
    """Where in the newer file entries were written.

    `full`: the file is the older one by now, and the one that was the older is gone.
    """

    positions: tuple[int, ...]
    full: bool


class Segments:
    """The files in one directory, which together take at most `size` bytes."""

    def __init__(self, directory: Path, size: int) -> None:
        """Open or make them, and take them for this process alone.

        Raises StateError naming the path where that cannot be, or another process has them.
        """
        self._directory = directory
        self._half = size // 2
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise _refused(directory, error) from error
        self._lock = ProcessLock.acquire(directory / LOCK)
        self.cut_off = 0
        try:
            self._cut_off_what_is_torn()
        except OSError as error:
            self._lock.release()
            raise _refused(directory, error) from error

    @property
    def newer(self) -> Path:
        """The file that is written to."""
        return self._directory / NEWER

    @property
    def older(self) -> Path:
        """The file before it."""
        return self._directory / OLDER

    @property
    def largest(self) -> int:
        """Bytes that one entry may take."""
        return self._half // 4

    def append(self, entries: Iterable[dc.JournalEntry]) -> Written:
        """Write entries. Raises OSError; what was written by half is cut off then."""
        frames = [_frame(entry) for entry in entries]
        with open(self.newer, "ab", opener=_private) as file:
            before = file.tell()
            try:
                file.write(b"".join(frames))
                file.flush()
            except OSError:
                os.truncate(self.newer, before)
                raise
            full = file.tell() >= self._half
        if full:
            self.newer.replace(self.older)
        begins = accumulate(map(len, frames[:-1]), initial=before)
        return Written(tuple(begins) if frames else (), full)

    def read(self) -> Iterator[Kept]:
        """Every entry, in the order of writing. Raises OSError."""
        for path in (self.older, self.newer):
            if path.exists():
                for entry, begin, _ in _entries(path.read_bytes()):
                    yield Kept(entry, Place(older=path == self.older, position=begin))

    def read_at(self, places: Sequence[Place]) -> list[dc.JournalEntry]:
        """The entries at these places. Raises OSError, also where one is damaged."""
        found: dict[Place, dc.JournalEntry] = {}
        for older, path in ((True, self.older), (False, self.newer)):
            wanted = [place for place in places if place.older == older]
            if not wanted:
                continue
            with path.open("rb") as file:
                for place in wanted:
                    file.seek(place.position)
                    found[place] = _read_one(file, path)
        return [found[place] for place in places]

    def close(self) -> None:
        """Give the files back."""
        self._lock.release()

    def _cut_off_what_is_torn(self) -> None:
        for path in (self.older, self.newer):
            if not path.exists():
                continue
            path.chmod(_MODE)
            data = path.read_bytes()
            sound = max((end for _, _, end in _entries(data)), default=0)
            if sound < len(data):
                self.cut_off += len(data) - sound
                os.truncate(path, sound)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, _MODE)


def _frame(entry: dc.JournalEntry) -> bytes:
    data = entry.SerializeToString()
    return _HEAD.pack(len(data), zlib.crc32(data)) + data


def _entries(data: bytes) -> Iterator[tuple[dc.JournalEntry, int, int]]:
    """Entries with where they begin and end, up to the first that is not whole."""
    position = 0
    while position + _HEAD.size <= len(data):
        length, checksum = _HEAD.unpack_from(data, position)
        start = position + _HEAD.size
        entry = _entry_of(data[start : start + length], length, checksum)
        if entry is None:
            return
        yield entry, position, start + length
        position = start + length


def _read_one(file: BinaryIO, path: Path) -> dc.JournalEntry:
    begin = file.tell()
    head = file.read(_HEAD.size)
    if len(head) == _HEAD.size:
        length, checksum = _HEAD.unpack(head)
        entry = _entry_of(file.read(length), length, checksum)
        if entry is not None:
            return entry
    raise OSError(errno.EBADMSG, f"the decision at byte {begin} is damaged", path)


def _entry_of(body: bytes, length: int, checksum: int) -> dc.JournalEntry | None:
    if len(body) < length or zlib.crc32(body) != checksum:
        return None
    try:
        return dc.JournalEntry.FromString(body)
    except DecodeError:
        return None


def _refused(directory: Path, error: OSError) -> StateError:
    return StateError(
        f"journal {directory}: {error.strerror}; numalign.journal.size 0 keeps no journal"
    )
