"""Answering calls over one connection of the multiplexer: ttrpc's server side."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from google.protobuf.message import DecodeError
from grpc import StatusCode

from numalign.kube.ttrpc.v1 import ttrpc_pb2
from numalign.telemetry.logs import get_logger
from numalign_agent.nri.wire.caller import Send
from numalign_agent.nri.wire.errors import CallFailed, Disconnected, MessageTooLong, code_number
from numalign_agent.nri.wire.ttrpc_frames import LARGEST_DATA, REQUEST, RESPONSE, Frame

Method = Callable[[bytes], Awaitable[bytes]]
"""Takes a serialised request and gives the serialised response, or raises CallFailed."""

Services = Mapping[str, Mapping[str, Method]]
"""Methods by name, by full name of their service."""

_NANOSECONDS = 1e9

_log = get_logger("ttrpc")


class Answerer:
    """Answers every request once; each is a task of its own."""

    def __init__(self, services: Services, send: Send) -> None:
        self._services = services
        self._send = send
        self._tasks: set[asyncio.Task[None]] = set()

    def heard(self, frame: Frame) -> None:
        """A frame arrived."""
        task = asyncio.create_task(self._answer(frame))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Give up what is still being answered."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, frame: Frame) -> None:
        response = ttrpc_pb2.Response()
        try:
            response.payload = await self._result(frame)
        except CallFailed as failed:
            _set_status(response, failed)
        try:
            try:
                await self._send(Frame(frame.stream, RESPONSE, response.SerializeToString()))
            except MessageTooLong as error:
                refusal = ttrpc_pb2.Response()
                _set_status(refusal, CallFailed(StatusCode.RESOURCE_EXHAUSTED, str(error)))
                await self._send(Frame(frame.stream, RESPONSE, refusal.SerializeToString()))
        except Disconnected as error:
            _log.debug("an answer came too late", stream=frame.stream, error=str(error))

    async def _result(self, frame: Frame) -> bytes:
        request = _request(frame)
        method = self._services.get(request.service, {}).get(request.method)
        if method is None:
            raise CallFailed(
                StatusCode.UNIMPLEMENTED,
                f"{request.service}/{request.method} is not implemented",
            )
        seconds = request.timeout_nano / _NANOSECONDS if request.timeout_nano > 0 else None
        try:
            async with asyncio.timeout(seconds) as limit:
                return await method(request.payload)
        except TimeoutError as error:
            if limit.expired():
                message = f"{request.method}: no answer within {seconds:g} s"
                raise CallFailed(StatusCode.DEADLINE_EXCEEDED, message) from None
            raise _fault(request.method, error) from error
        except CallFailed:
            raise
        except DecodeError as error:
            message = f"{request.method}: the request cannot be read"
            raise CallFailed(StatusCode.INVALID_ARGUMENT, message) from error
        except Exception as error:
            raise _fault(request.method, error) from error


def _fault(method: str, error: Exception) -> CallFailed:
    _log.error("a call could not be answered", method=method, exc_info=error)
    return CallFailed(StatusCode.INTERNAL, f"{method}: {str(error) or type(error).__name__}")


def _request(frame: Frame) -> ttrpc_pb2.Request:
    if frame.data is None:
        raise CallFailed(
            StatusCode.RESOURCE_EXHAUSTED, f"the request has more than {LARGEST_DATA} bytes"
        )
    if frame.stream % 2 == 0:
        raise CallFailed(
            StatusCode.INVALID_ARGUMENT, f"stream {frame.stream}: a caller's ids are odd"
        )
    if frame.kind != REQUEST:
        raise CallFailed(
            StatusCode.INVALID_ARGUMENT, f"a frame of type {frame.kind}, not a request"
        )
    try:
        return ttrpc_pb2.Request.FromString(frame.data)
    except DecodeError as error:
        raise CallFailed(
            StatusCode.INVALID_ARGUMENT, "the bytes are not those of a ttrpc request"
        ) from error


def _set_status(response: ttrpc_pb2.Response, failed: CallFailed) -> None:
    response.status.code = code_number(failed.code)
    response.status.message = failed.message
