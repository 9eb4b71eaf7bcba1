"""How long a caller may take: for its request to arrive, for the next of a stream, for all of it.

gRPC ends a call at the deadline that its caller set. A caller that sets none, or that sends the
head of a request and never the rest, would hold its place for ever. Instead of a timer for every
call there is one look at all of them now and then, so that a call pays for two entries in a set.
Separate from `guard`, which calls inside the process go through as well.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any, NoReturn

from grpc import StatusCode, aio

from numalign.config.settings import LimitSettings
from numalign.rpc.context import Context
from numalign.rpc.methods import Behaviour, Method

LOOK_SECONDS = 1.0
"""How often the calls are looked at: a limit is kept to this precision."""


class CallClock:
    """The calls of one server that wait for their callers, and since when."""

    def __init__(self, limits: LimitSettings) -> None:
        self._limits = limits
        self._calls: set[_Call] = set()

    def expire(self) -> None:
        """End the calls that are past their limit; called on the server's event loop."""
        now = asyncio.get_running_loop().time()
        for call in [call for call in self._calls if call.due <= now]:
            call.expire()

    def limited(self, method: Method) -> Method:
        """The method under the limits.

        What it takes is a stream of requests to gRPC, which looks the same on the wire: so a
        request is waited for here, where its call can be ended with a status.
        """
        behaviour = method.behaviour
        if method.request_streaming:
            limited = self._stream_in(behaviour, streams_out=method.response_streaming)
        elif method.response_streaming:
            limited = self._unary_in_stream_out(behaviour)
        else:
            limited = self._unary(behaviour)
        return replace(method, behaviour=limited, request_streaming=True)

    def _unary(self, behaviour: Behaviour) -> Behaviour:
        longest = self._limits.call_timeout
        too_long = f"the call took longer than {longest:g} s"

        async def call(requests: object, context: Context) -> Any:
            del requests
            entry = self._begin()
            try:
                request = await context.read()
                if request is aio.EOF:
                    return await _refuse(entry, context)
                entry.due, entry.text = _time() + longest, too_long
                return await behaviour(request, context)
            except asyncio.CancelledError:
                if not entry.expired:
                    raise
                return await _refuse(entry, context)
            finally:
                self._calls.discard(entry)

        return call

    def _unary_in_stream_out(self, behaviour: Behaviour) -> Behaviour:
        async def call(requests: object, context: Context) -> AsyncIterator[Any]:
            del requests
            entry = self._begin()
            try:
                request = await context.read()
            except asyncio.CancelledError:
                if not entry.expired:
                    raise
                await _refuse(entry, context)
            finally:
                self._calls.discard(entry)
            if request is aio.EOF:
                await _refuse(entry, context)
            async with aclosing(behaviour(request, context)) as responses:
                async for response in responses:
                    yield response

        return call

    def _stream_in(self, behaviour: Behaviour, *, streams_out: bool) -> Behaviour:
        async def call(requests: Any, context: Context) -> Any:
            entry = self._begin()
            try:
                return await behaviour(self._timed(requests, entry), context)
            except asyncio.CancelledError:
                if not entry.expired:
                    raise
                return await _refuse(entry, context)
            finally:
                self._calls.discard(entry)

        async def stream(requests: Any, context: Context) -> AsyncIterator[Any]:
            entry = self._begin()
            try:
                timed = self._timed(requests, entry)
                async with aclosing(behaviour(timed, context)) as responses:
                    async for response in responses:
                        yield response
            except asyncio.CancelledError:
                if not entry.expired:
                    raise
                await _refuse(entry, context)
            finally:
                self._calls.discard(entry)

        return stream if streams_out else call

    async def _timed(self, requests: Any, entry: _Call) -> AsyncIterator[Any]:
        idle = self._limits.stream_idle_timeout
        entry.text = f"no further request came within {idle:g} s"
        iterator = aiter(requests)
        while True:
            entry.due = _time() + idle
            try:
                request = await anext(iterator)
            except StopAsyncIteration:
                return
            finally:
                entry.due = math.inf
            yield request

    def _begin(self) -> _Call:
        within = self._limits.request_timeout
        call = _Call(_time() + within, f"the request did not arrive within {within:g} s")
        self._calls.add(call)
        return call


class _Call:
    """One call: `due` is when it ends unless it goes on before, `text` what its caller is told."""

    __slots__ = ("_task", "due", "expired", "text")

    def __init__(self, due: float, text: str) -> None:
        self.due = due
        self.text = text
        self.expired = False
        self._task = asyncio.current_task()

    def expire(self) -> None:
        """End it, once."""
        self.expired = True
        self.due = math.inf
        if self._task is not None:
            self._task.cancel()

    def taken(self) -> None:
        """The cancellation that `expire` sent has been seen."""
        if self._task is not None:
            self._task.uncancel()


async def _refuse(entry: _Call, context: Context) -> NoReturn:
    if entry.expired:
        entry.taken()
        await context.abort(StatusCode.DEADLINE_EXCEEDED, entry.text)
    await context.abort(StatusCode.INVALID_ARGUMENT, "the call ended without a request")


def _time() -> float:
    return asyncio.get_running_loop().time()
