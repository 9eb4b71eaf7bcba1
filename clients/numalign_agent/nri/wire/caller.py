"""Calls over one connection of the multiplexer: ttrpc's client side."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from google.protobuf.message import DecodeError
from grpc import StatusCode

from numalign.kube.ttrpc.v1 import ttrpc_pb2
from numalign_agent.nri.wire.errors import CallFailed, WireError, code_of
from numalign_agent.nri.wire.ttrpc_frames import LARGEST_DATA, REQUEST, RESPONSE, Frame

Send = Callable[[Frame], Awaitable[None]]
"""Sends a frame; raises Disconnected and MessageTooLong."""


class Caller:
    """Makes calls and matches their answers. Several may be under way at once."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._next_stream = 1
        self._waiting: dict[int, asyncio.Future[Frame]] = {}

    async def call(self, service: str, method: str, payload: bytes, seconds: float) -> bytes:
        """Call a method with a serialised request; the serialised response.

        Raises CallFailed with what was answered, or with DEADLINE_EXCEEDED after `seconds`;
        Disconnected when the connection ends; MessageTooLong when nothing was sent.
        """
        stream = self._next_stream
        self._next_stream += 2
        request = ttrpc_pb2.Request(
            service=service,
            method=method,
            payload=payload,
            timeout_nano=int(seconds * 1e9),
        )
        answer: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._waiting[stream] = answer
        try:
            async with asyncio.timeout(seconds):
                await self._send(Frame(stream, REQUEST, request.SerializeToString()))
                return _payload(await answer)
        except TimeoutError:
            message = f"{service}/{method}: no answer within {seconds:g} s"
            raise CallFailed(StatusCode.DEADLINE_EXCEEDED, message) from None
        finally:
            del self._waiting[stream]

    def heard(self, frame: Frame) -> None:
        """A frame arrived. One that nobody waits for came too late, and is dropped."""
        answer = self._waiting.get(frame.stream)
        if answer is not None and not answer.done():
            answer.set_result(frame)

    def disconnected(self, error: WireError) -> None:
        """The connection has ended: whoever waits gets `error`."""
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(error)


def _payload(frame: Frame) -> bytes:
    if frame.data is None:
        raise CallFailed(
            StatusCode.RESOURCE_EXHAUSTED, f"the answer has more than {LARGEST_DATA} bytes"
        )
    if frame.kind != RESPONSE:
        raise CallFailed(StatusCode.INTERNAL, f"an answer of type {frame.kind}, not a response")
    try:
        response = ttrpc_pb2.Response.FromString(frame.data)
    except DecodeError as error:
        raise CallFailed(StatusCode.INTERNAL, "the answer is no ttrpc response") from error
    if response.status.code:
        raise CallFailed(code_of(response.status.code), response.status.message)
    return response.payload
