"""The multiplexer's frames: several connections over one socket.

Pure. A frame is four bytes of connection id, four bytes of length, both big endian, and so
many bytes. When reading, the frames of one connection are a stream of bytes and nothing more:
where a frame ends says nothing. When writing it matters (`frames_of`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from numalign_agent.nri.wire.errors import ProtocolError

PLUGIN_CONNECTION = 1
"""Over it the runtime calls the plugin."""

RUNTIME_CONNECTION = 2
"""Over it the plugin calls the runtime."""

LARGEST_PAYLOAD = (4 << 20) + 10
"""A ttrpc message of the largest size, with its header."""

READ_BUFFER = 4096
"""What the runtime's side reads a connection with."""

_HEADER = struct.Struct(">II")


def frames_of(connection: int, message: bytes) -> bytes:
    """The frames that carry one whole ttrpc message, its header included.

    The runtime reads with a buffer of READ_BUFFER bytes, into which a whole frame has to fit,
    and reads what is left of a longer message with a buffer of just that size. So a message is
    one frame up to the size of the buffer; beyond, one of that size and one of all the rest.
    """
    first, rest = message[:READ_BUFFER], message[READ_BUFFER:]
    frames = [_HEADER.pack(connection, len(first)), first]
    if rest:
        frames += [_HEADER.pack(connection, len(rest)), rest]
    return b"".join(frames)


class TrunkReader:
    """Takes what arrives on the socket, cut anywhere, and tells whose bytes they are."""

    def __init__(self) -> None:
        self._header = bytearray()
        self._connection = 0
        self._left = 0

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Pairs of connection id and bytes for it, in order; to be exhausted before the next call.

        Raises ProtocolError for connection 0 and for a frame above LARGEST_PAYLOAD: what
        follows cannot be told apart then.
        """
        at = 0
        while at < len(data):
            if self._left == 0:
                wanted = _HEADER.size - len(self._header)
                self._header += data[at : at + wanted]
                at += wanted
                if len(self._header) < _HEADER.size:
                    return
                self._begin()
                continue
            chunk = data[at : at + self._left]
            at += len(chunk)
            self._left -= len(chunk)
            yield self._connection, chunk

    def _begin(self) -> None:
        self._connection, self._left = _HEADER.unpack(self._header)
        self._header.clear()
        if self._connection == 0:
            raise ProtocolError("a frame for connection 0, which is reserved")
        if self._left > LARGEST_PAYLOAD:
            raise ProtocolError(
                f"a frame of {self._left} bytes, at most {LARGEST_PAYLOAD} are allowed"
            )
