"""What goes wrong on the socket of a runtime, or is answered over it.

Nothing else is raised on purpose by this package.

    WireError
     ├── Disconnected     the socket is closed, or was never there
     ├── ProtocolError    the other side does not keep to the framing: the socket is of no use
     ├── MessageTooLong   what is to be sent is longer than a peer takes; nothing was sent
     └── CallFailed       a call was answered with a status, or not in time
"""

from __future__ import annotations

from collections.abc import Mapping

from grpc import StatusCode


class WireError(Exception):
    """Base of everything that this package raises on purpose."""


class Disconnected(WireError):
    """There is no connection, or not any more."""


class ProtocolError(WireError):
    """The other side sent what no frame may be."""


class MessageTooLong(WireError):
    """A message is longer than a frame may be."""


class CallFailed(WireError):
    """A call failed with a status. Raised by a handler, it is what the caller is answered."""

    def __init__(self, code: StatusCode, message: str) -> None:
        super().__init__(f"{message} ({code.name})" if message else code.name)
        self.code = code
        self.message = message


def code_number(code: StatusCode) -> int:
    """The number that a status code has on the wire."""
    number: int = code.value[0]
    return number


_CODES: Mapping[int, StatusCode] = {code_number(code): code for code in StatusCode}


def code_of(number: int) -> StatusCode:
    """The status code with this number; UNKNOWN for a number that none has."""
    return _CODES.get(number, StatusCode.UNKNOWN)
