"""Where log lines go: a stream that never fails the one who logs.

Separate because a log that cannot be written (a full disk, a reader that went away) must not
decide over pods: what is answered does not depend on what can be told about it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO


class LogStream:
    """Lines to `stream`, each written at once.

    A line that cannot be written is counted, and the count is told, in the words of `notice`,
    as soon as a line can be written again. Used by one thread at a time, which structlog's
    lock on the file sees to.
    """

    # structlog keeps a lock for every stream as long as there is the stream.
    __slots__ = ("__weakref__", "_lost", "_notice", "_stream")

    def __init__(self, stream: TextIO, notice: Callable[[int], str]) -> None:
        self._stream = stream
        self._notice = notice
        self._lost = 0

    def write(self, line: str) -> int:
        """Write a line, with how many were lost before it; the length of the line."""
        text = f"{self._notice(self._lost)}\n{line}" if self._lost else line
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            self._lost += 1
        else:
            self._lost = 0
        return len(line)

    def flush(self) -> None:
        """Nothing is left to write."""
