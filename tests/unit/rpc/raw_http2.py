"""Frames of HTTP/2 made by hand: for clients that begin what they never finish."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from dataclasses import dataclass
from pathlib import Path

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS = 0, 1, 3, 4
END_STREAM, END_HEADERS = 1, 4


@dataclass(frozen=True)
class Frame:
    """A frame as it was received."""

    kind: int
    flags: int
    stream: int
    payload: bytes

    @property
    def ends_stream(self) -> bool:
        """Whether the sender has nothing more to say on the stream."""
        return self.kind == RST_STREAM or (
            self.kind in {DATA, HEADERS} and bool(self.flags & END_STREAM)
        )


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def call_headers(path: str, stream: int = 1) -> bytes:
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": path,
        ":authority": "localhost",
        "content-type": "application/grpc",
        "te": "trailers",
    }
    block = b"".join(
        b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in fields.items()
    )
    return frame(HEADERS, END_HEADERS, stream, block)


def begun_message(size: int, sent: int, stream: int = 1) -> bytes:
    return frame(DATA, 0, stream, struct.pack(">BI", 0, size) + b"x" * sent)


class RawClient:
    """A connection on which anything can be said."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, path: Path) -> RawClient:
        return cls(*await asyncio.open_unix_connection(path))

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    def greet(self) -> None:
        self.send(PREFACE + frame(SETTINGS, 0, 0, b""))

    async def receive(self) -> Frame | None:
        """The next frame; None when the other side has closed the connection."""
        try:
            head = await self._reader.readexactly(9)
            kind, flags, stream = struct.unpack(">BBI", head[3:])
            payload = await self._reader.readexactly(int.from_bytes(head[:3], "big"))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        return Frame(kind, flags, stream, payload)

    async def closed(self, within: float) -> bool:
        """Whether the other side closes the connection in so many seconds."""
        try:
            async with asyncio.timeout(within):
                while await self.receive() is not None:
                    pass
        except TimeoutError:
            return False
        return True

    async def stream_ended(self, stream: int, within: float) -> bool:
        """Whether the other side ends a stream in so many seconds."""
        try:
            async with asyncio.timeout(within):
                while (received := await self.receive()) is not None:
                    if received.stream == stream and received.ends_stream:
                        return True
        except TimeoutError:
            pass
        return False

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()
