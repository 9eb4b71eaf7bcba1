"""What a user reads when a command fails: a line for every problem, never a traceback."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, Any

import click

from numalign.errors import (
    ConfigError,
    FieldViolation,
    InvalidInput,
    NumalignError,
    StartError,
)

if TYPE_CHECKING:
    from grpc.aio import AioRpcError

    from numalign.v1.admission_pb2 import StreamError


_TOO_LARGE = re.compile(r"(?:SERVER: Received|Sent) message larger than max \((\d+) vs\. (\d+)\)")
"""How gRPC refuses a request before a service sees it."""


class CommandFailed(click.ClickException):
    """Ends a command with exit code 1 and `lines` on standard error."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines

    def show(self, file: IO[Any] | None = None) -> None:
        """Write the lines."""
        say(self.lines, file)


def say(lines: Iterable[str], file: IO[Any] | None = None) -> None:
    """Write lines to standard error, each under the command's name."""
    for line in lines:
        click.echo(f"numalign: {line}", file=file, err=True)


def describe(error: Exception) -> tuple[str, ...] | None:
    """The lines for an error that is foreseen, each naming what is wrong and where; else None."""
    aio = sys.modules.get("grpc.aio")
    if aio is not None and isinstance(error, aio.AioRpcError):
        return describe_status(error)
    if isinstance(error, BrokenPipeError) or not isinstance(error, NumalignError | OSError):
        return None
    if isinstance(error, InvalidInput):
        return tuple(map(_violation, error.violations))
    if isinstance(error, ConfigError):
        return tuple(str(error).splitlines())
    if isinstance(error, StartError):
        return (error.line(),)
    if isinstance(error, OSError) and error.filename is not None:
        return (f"{error.filename}: {error.strerror}",)
    return (str(error) or type(error).__name__,)


def describe_status(error: AioRpcError) -> tuple[str, ...]:
    """The lines for a call that failed: its field violations, or its message and code."""
    # A caller of grpc has imported these already; a command without calls must not pay for it.
    from grpc import StatusCode  # noqa: PLC0415

    from numalign.rpc.status import violations_of  # noqa: PLC0415

    if error.code() is StatusCode.INVALID_ARGUMENT:
        return tuple(map(_violation, violations_of(error)))
    if error.code() is StatusCode.DEADLINE_EXCEEDED:
        return ("no answer in time; give more with --timeout",)
    too_large = _TOO_LARGE.search(error.details() or "")
    if too_large is not None:
        return (f"the request has {too_large[1]} bytes, and a service takes {too_large[2]}",)
    return (f"{error.details() or 'the call failed'} ({error.code().name})",)


def describe_item(error: StreamError) -> tuple[str, ...]:
    """The line for one pod of several on which no decision was made."""
    from grpc import StatusCode  # noqa: PLC0415 - as above

    code = next((code for code in StatusCode if code.value[0] == error.code), StatusCode.UNKNOWN)
    if code is StatusCode.INVALID_ARGUMENT:
        return (error.message,)
    return (f"{error.message or 'the call failed'} ({code.name})",)


def _violation(violation: FieldViolation) -> str:
    if not violation.field:
        return violation.description
    return f"{violation.field}: {violation.description}"
