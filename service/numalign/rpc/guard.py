"""What surrounds every servicer method: deadline, trace, and errors turned into statuses.

Separate from servers and servicers: the wrapping is done once, when a server is built, so
that a call pays for no interceptor, and calls inside the process get the same treatment as
calls over a socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any, NoReturn

from grpc import StatusCode, aio

from numalign.rpc.context import Context
from numalign.rpc.deadline import current_deadline
from numalign.rpc.methods import Behaviour, Method
from numalign.rpc.status import is_expected, status_of, trailing_of, wants_a_human
from numalign.telemetry.logs import get_logger
from numalign.telemetry.spans import Tracer
from numalign.telemetry.trace_context import TraceContext, current_trace, trace_of

_log = get_logger("rpc")

# A caller gives up a moment before the server's clock says so.
_DEADLINE_SLACK = 0.02


def guarded(method: Method, tracer: Tracer | None, longest: float | None = None) -> Method:
    """The method with its errors turned into statuses, and a span where there is a tracer.

    `longest` is how many seconds a unary call has whose caller set no earlier deadline: the
    calls it makes in turn get no more. Ending it then is the server's part (`call_clock`).

    An error that is not one of ours is logged with its traceback and answered as INTERNAL.
    Whatever a unary method binds to contextvars it must unbind, since a call inside the
    process runs in its caller's task.
    """
    if method.response_streaming:
        stream = _stream(method.path, method.behaviour, follow=tracer is None)
        behaviour = stream if tracer is None else _traced_stream(method.path, stream, tracer)
    else:
        unary = _unary(method.path, method.behaviour, longest, follow=tracer is None)
        behaviour = unary if tracer is None else _traced_unary(method.path, unary, tracer)
    return replace(method, behaviour=behaviour)


def _unary(path: str, behaviour: Behaviour, longest: float | None, *, follow: bool) -> Behaviour:
    async def call(request: Any, context: Context) -> Any:
        deadline = current_deadline.set(_deadline_of(context, longest))
        trace = current_trace.set(_trace_of(context)) if follow else None
        try:
            return await behaviour(request, context)
        except Exception as error:
            await _fail(path, error, context)
        finally:
            if trace is not None:
                current_trace.reset(trace)
            current_deadline.reset(deadline)

    return call


def _stream(path: str, behaviour: Behaviour, *, follow: bool) -> Behaviour:
    # A streaming call has a task of its own, whose context ends with it: nothing is reset,
    # and could not be where an abandoned generator is finished by the event loop.
    async def call(request: Any, context: Context) -> AsyncIterator[Any]:
        current_deadline.set(_deadline_of(context))
        if follow:
            current_trace.set(_trace_of(context))
        try:
            async with aclosing(behaviour(request, context)) as responses:
                async for response in responses:
                    yield response
        except Exception as error:
            await _fail(path, error, context)

    return call


def _traced_unary(path: str, behaviour: Behaviour, tracer: Tracer) -> Behaviour:
    async def call(request: Any, context: Context) -> Any:
        span = tracer.server(path, _trace_of(context))
        token = span.enter()
        code, text = StatusCode.UNKNOWN, ""
        try:
            response = await behaviour(request, context)
            code, text = _outcome(context)
        except aio.AbortError:
            code, text = _outcome(context)
            raise
        except asyncio.CancelledError:
            code = _cancelled(context)
            raise
        finally:
            span.leave(token)
            span.end(code, text)
        return response

    return call


def _traced_stream(path: str, behaviour: Behaviour, tracer: Tracer) -> Behaviour:
    async def call(request: Any, context: Context) -> AsyncIterator[Any]:
        span = tracer.server(path, _trace_of(context))
        span.enter()
        code, text = StatusCode.UNKNOWN, ""
        try:
            async with aclosing(behaviour(request, context)) as responses:
                async for response in responses:
                    yield response
            code, text = _outcome(context)
        except aio.AbortError:
            code, text = _outcome(context)
            raise
        except (asyncio.CancelledError, GeneratorExit):
            code = _cancelled(context)
            raise
        finally:
            span.end(code, text)

    return call


async def _fail(path: str, error: Exception, context: Context) -> NoReturn:
    if isinstance(error, aio.AbortError):
        raise error
    code, message = status_of(error)
    if not is_expected(error):
        _log.exception("call failed", method=path, exc_info=error)
    elif wants_a_human(error):
        _log.error("call failed", method=path, error=message)
    await context.abort(code, message, trailing_of(error))


def _trace_of(context: Context) -> TraceContext | None:
    return trace_of(context.invocation_metadata() or ())


def _deadline_of(context: Context, longest: float | None = None) -> float | None:
    left: float | None = context.time_remaining()
    if longest is not None and (left is None or left > longest):
        left = longest
    return None if left is None else asyncio.get_running_loop().time() + left


def _outcome(context: Context) -> tuple[StatusCode, str]:
    # grpc has no code until one is set.
    code: StatusCode | None = context.code()
    return code or StatusCode.OK, context.details() or ""


def _cancelled(context: Context) -> StatusCode:
    left: float | None = context.time_remaining()
    expired = left is not None and left <= _DEADLINE_SLACK
    return StatusCode.DEADLINE_EXCEEDED if expired else StatusCode.CANCELLED
