"""Calling Admission until it answers: with the pauses of LOOP-8, for as long as it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign_agent.admitting.trouble import Trouble, trouble_of
from numalign_agent.loop.pause import Pause
from numalign_agent.metrics import ADMISSION_ERRORS
from numalign_client.errors import AdmissionError

T = TypeVar("T")

_log = get_logger("admission")


async def until_answered(call: Callable[[], Awaitable[T]], metrics: Metrics) -> T:
    """What `call` returns once Admission is there.

    Raises AdmissionError for an answer that asking again does not change.
    """
    pause = Pause()
    while True:
        try:
            return await call()
        except AdmissionError as error:
            code = error.code.name
            metrics.counter(ADMISSION_ERRORS).labels(code).inc()
            if trouble_of(code, ()) is not Trouble.SERVICE:
                raise
            _log.warning("waiting for Admission", code=code, error=error.message)
        await asyncio.sleep(pause.seconds)
        pause = pause.longer()


async def released(call: Callable[[], Awaitable[None]], uid: str, metrics: Metrics) -> None:
    """Release a pod, whatever it takes; where that is refused, a reconciliation does it later."""
    try:
        await until_answered(call, metrics)
    except AdmissionError as error:
        _log.error("not released yet", pod_uid=uid, code=error.code.name, error=error.message)
