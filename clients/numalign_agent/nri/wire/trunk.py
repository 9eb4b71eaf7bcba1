"""One socket to the runtime, over which both sides call each other.

Separate from the frames, which are pure, and from what is said over it.
"""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import Self

from numalign.telemetry.logs import get_logger
from numalign_agent.nri.wire.answerer import Answerer, Services
from numalign_agent.nri.wire.caller import Caller
from numalign_agent.nri.wire.errors import Disconnected, ProtocolError, WireError
from numalign_agent.nri.wire.trunk_frames import (
    PLUGIN_CONNECTION,
    RUNTIME_CONNECTION,
    TrunkReader,
    frames_of,
)
from numalign_agent.nri.wire.ttrpc_frames import Frame, FrameReader, encoded

_READ = 1 << 16

_log = get_logger("ttrpc")


class Trunk:
    """Serves the plugin's services and calls the runtime's, until the socket ends.

    Reads nothing before `run`, so that what it serves can be built around it first.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, services: Services
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._caller = Caller(partial(self._send, RUNTIME_CONNECTION))
        self._answerer = Answerer(services, partial(self._send, PLUGIN_CONNECTION))
        self._ended: WireError | None = None

    @classmethod
    async def connect(cls, path: str | os.PathLike[str], services: Services) -> Self:
        """Connect to the socket at `path`. Raises Disconnected with the reason."""
        try:
            reader, writer = await asyncio.open_unix_connection(path)
        except OSError as error:
            raise Disconnected(f"{os.fspath(path)}: {error.strerror or error}") from error
        return cls(reader, writer, services)

    async def call(self, service: str, method: str, payload: bytes, seconds: float) -> bytes:
        """As `Caller.call`, of the runtime."""
        if self._ended is not None:
            raise Disconnected(str(self._ended)) from self._ended
        return await self._caller.call(service, method, payload, seconds)

    async def run(self) -> None:
        """Read until the runtime closes the socket or breaks the framing, and then close it.

        Raises ProtocolError for the latter; the end of the socket is no error here.
        """
        try:
            await self._read()
        except OSError as error:
            self._end(Disconnected(f"the socket failed: {error}"))
        except ProtocolError as error:
            self._end(error)
            raise
        finally:
            self._end(Disconnected("the runtime closed the socket"))
            await self._answerer.close()
            await self.close()

    async def close(self) -> None:
        """Close the socket; calls that wait fail with Disconnected."""
        self._end(Disconnected("the socket was closed"))
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError as error:
            # It is closed in any case; why the other side minds is no concern any more.
            _log.debug("closing the socket", error=str(error))

    async def _read(self) -> None:
        trunk = TrunkReader()
        frames = {PLUGIN_CONNECTION: FrameReader(), RUNTIME_CONNECTION: FrameReader()}
        heard = {
            PLUGIN_CONNECTION: self._answerer.heard,
            RUNTIME_CONNECTION: self._caller.heard,
        }
        while data := await self._reader.read(_READ):
            for connection, chunk in trunk.feed(data):
                if connection not in frames:
                    _log.debug("bytes for a connection that is not open", connection=connection)
                    continue
                for frame in frames[connection].feed(chunk):
                    heard[connection](frame)

    async def _send(self, connection: int, frame: Frame) -> None:
        message = frames_of(connection, encoded(frame))
        if self._ended is not None:
            raise Disconnected(str(self._ended)) from self._ended
        # All frames of a message in one piece: two senders' frames must not mix.
        self._writer.write(message)
        try:
            await self._writer.drain()
        except OSError as error:
            raise Disconnected(f"the socket failed: {error}") from error

    def _end(self, error: WireError) -> None:
        if self._ended is None:
            self._ended = error
            self._caller.disconnected(Disconnected(str(error)))
