"""The runtime's side of the framing, with the manners of its Go reader, for tests.

Written from the facts of docs/spec/protocols.md P5 and sharing no code with the plugin's side:
a connection's frames are queued whole, and a read with a buffer that is smaller than the next
frame kills the connection.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque

from numalign.kube.ttrpc.v1 import ttrpc_pb2

BUFFER = 4096
QUEUE = 256
HEADER = 10


class NoMemory(Exception):
    """ENOMEM: a frame did not fit the buffer that it was to be read into."""


class GoConnection:
    """Frames of one connection, read as ttrpc reads them: through a buffer of BUFFER bytes."""

    def __init__(self) -> None:
        self.queue: deque[bytes] = deque()
        self._buffer = b""
        self._header: tuple[int, int, int, int] | None = None
        self._body = b""

    def put(self, frame: bytes) -> None:
        if len(self.queue) >= QUEUE:
            raise NoMemory("the queue is full, the whole trunk is closed")
        self.queue.append(frame)

    def messages(self) -> list[tuple[int, int, bytes]]:
        """Whole ttrpc messages (stream, type, data) that can be read by now."""
        found: list[tuple[int, int, bytes]] = []
        while True:
            if self._header is None:
                if not self._fill(HEADER):
                    return found
                head, self._buffer = self._buffer[:HEADER], self._buffer[HEADER:]
                self._header = struct.unpack(">IIBB", head)
                self._body = b""
            length, stream, kind, _flags = self._header
            if not self._read_body(length):
                return found
            found.append((stream, kind, self._body))
            self._header = None

    def _fill(self, wanted: int) -> bool:
        while len(self._buffer) < wanted:
            if not self.queue:
                return False
            self._take(BUFFER - len(self._buffer))
        return True

    def _take(self, room: int) -> None:
        frame = self.queue.popleft()
        if len(frame) > room:
            raise NoMemory(f"a frame of {len(frame)} bytes into a buffer of {room}")
        self._buffer += frame

    def _read_body(self, length: int) -> bool:
        while len(self._body) < length:
            left = length - len(self._body)
            if self._buffer:
                taken, self._buffer = self._buffer[:left], self._buffer[left:]
                self._body += taken
                continue
            if not self.queue:
                return False
            if left >= BUFFER:
                # As large as the buffer or larger: read past it, straight to where it belongs.
                frame = self.queue.popleft()
                if len(frame) > left:
                    raise NoMemory(f"a frame of {len(frame)} bytes into {left}")
                self._body += frame
            else:
                self._take(BUFFER)
        return True


def split_trunk(data: bytes) -> list[tuple[int, bytes]]:
    """Whole frames of the multiplexer: connection and payload."""
    frames = []
    while data:
        connection, length = struct.unpack(">II", data[:8])
        assert len(data) >= 8 + length, "half a frame"
        frames.append((connection, data[8 : 8 + length]))
        data = data[8 + length :]
    return frames


def ttrpc(stream: int, kind: int, body: bytes) -> bytes:
    """One ttrpc frame."""
    return struct.pack(">IIBB", len(body), stream, kind, 0) + body


def muxed(connection: int, data: bytes, pieces: int = 1 << 22) -> bytes:
    """Bytes in frames of at most `pieces` bytes."""
    out = b""
    for at in range(0, len(data), pieces):
        part = data[at : at + pieces]
        out += struct.pack(">II", connection, len(part)) + part
    return out


class GoPeer:
    """The runtime's end of a socket: calls the Plugin service, answers the Runtime service."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.calls: asyncio.Queue[tuple[int, ttrpc_pb2.Request]] = asyncio.Queue()
        self._stream = 1
        self._waiting: dict[int, asyncio.Future[ttrpc_pb2.Response]] = {}
        self._task = asyncio.create_task(self._read())

    async def call(
        self, method: str, payload: bytes, *, seconds: float = 60.0, timeout_nano: int | None = None
    ) -> ttrpc_pb2.Response:
        stream = self._stream
        self._stream += 2
        self._waiting[stream] = asyncio.get_running_loop().create_future()
        request = ttrpc_pb2.Request(
            service="nri.pkg.api.v1alpha1.Plugin",
            method=method,
            payload=payload,
            timeout_nano=int(seconds * 1e9) if timeout_nano is None else timeout_nano,
        )
        self.send(1, ttrpc(stream, 1, request.SerializeToString()))
        async with asyncio.timeout(seconds):
            return await self._waiting[stream]

    async def answer_of(self, stream: int) -> ttrpc_pb2.Response:
        """The answer to a request that a test sent by itself."""
        self._waiting.setdefault(stream, asyncio.get_running_loop().create_future())
        async with asyncio.timeout(60):
            return await self._waiting[stream]

    def answer(self, stream: int, payload: bytes = b"", code: int = 0, message: str = "") -> None:
        response = ttrpc_pb2.Response(payload=payload)
        response.status.code = code
        response.status.message = message
        self.send(2, ttrpc(stream, 2, response.SerializeToString()))

    def send(self, connection: int, data: bytes) -> None:
        self.writer.write(muxed(connection, data))

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self.writer.close()

    async def closed(self) -> None:
        """Until the other side has closed the socket. Raises what reading raised."""
        async with asyncio.timeout(60):
            await asyncio.shield(self._task)

    async def _read(self) -> None:
        connections = {1: GoConnection(), 2: GoConnection()}
        try:
            while True:
                head = await self.reader.readexactly(8)
                connection, length = struct.unpack(">II", head)
                connections[connection].put(await self.reader.readexactly(length))
                for stream, _kind, body in connections[1].messages():
                    waiting = self._waiting.setdefault(
                        stream, asyncio.get_running_loop().create_future()
                    )
                    waiting.set_result(ttrpc_pb2.Response.FromString(body))
                for stream, _kind, body in connections[2].messages():
                    self.calls.put_nowait((stream, ttrpc_pb2.Request.FromString(body)))
        except (asyncio.IncompleteReadError, ConnectionError):
            return
