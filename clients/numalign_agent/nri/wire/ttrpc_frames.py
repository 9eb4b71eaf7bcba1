"""ttrpc's frames: one message of a call each, within one connection of the multiplexer.

Pure. A frame is four bytes of length, four bytes of stream id, both big endian, one byte of
type, one byte of flags, and so many bytes of protobuf.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from numalign_agent.nri.wire.errors import MessageTooLong

REQUEST, RESPONSE, DATA = 1, 2, 3
"""Types of frames."""

LARGEST_DATA = 4 << 20
"""Most bytes of one message, without the header."""

_HEADER = struct.Struct(">IIBB")


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame. `data` None: it had more than LARGEST_DATA bytes, which were passed over."""

    stream: int
    kind: int
    data: bytes | None
    flags: int = 0


def encoded(frame: Frame) -> bytes:
    """The bytes of a frame that has data. Raises MessageTooLong above LARGEST_DATA."""
    data = frame.data or b""
    if len(data) > LARGEST_DATA:
        raise MessageTooLong(f"a message of {len(data)} bytes, at most {LARGEST_DATA} can be sent")
    return _HEADER.pack(len(data), frame.stream, frame.kind, frame.flags) + data


class FrameReader:
    """Takes the bytes of one connection, cut anywhere, and gives whole frames."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._to_pass_over = 0
        self._passed_over: Frame | None = None

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete, in order; to be exhausted before the next call."""
        self._bytes += data
        while True:
            if self._passed_over is not None:
                skipped = min(self._to_pass_over, len(self._bytes))
                del self._bytes[:skipped]
                self._to_pass_over -= skipped
                if self._to_pass_over:
                    return
                frame, self._passed_over = self._passed_over, None
                yield frame
            if len(self._bytes) < _HEADER.size:
                return
            length, stream, kind, flags = _HEADER.unpack_from(self._bytes)
            if length > LARGEST_DATA:
                del self._bytes[: _HEADER.size]
                self._to_pass_over = length
                self._passed_over = Frame(stream, kind, None, flags)
                continue
            end = _HEADER.size + length
            if len(self._bytes) < end:
                return
            body = bytes(self._bytes[_HEADER.size : end])
            del self._bytes[:end]
            yield Frame(stream, kind, body, flags)
