"""How a call to an API server ends when it does not succeed."""

from __future__ import annotations

from numalign.errors import NumalignError

NOT_FOUND, CONFLICT, GONE = 404, 409, 410


class ApiError(NumalignError):
    """A call did not succeed; the text says why."""


class Unreachable(ApiError):
    """The server could not be reached, or stopped answering: the same call may succeed later."""


class Refused(ApiError):
    """The server answered with an error: its HTTP status, its one word, and what it says."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}" if message else f"{status} {reason}")
        self.status = status
        self.reason = reason
        self.message = message

    @property
    def is_not_found(self) -> bool:
        """There is no such object."""
        return self.status == NOT_FOUND

    @property
    def is_conflict(self) -> bool:
        """It exists already, or it is not the one that was meant."""
        return self.status == CONFLICT

    @property
    def is_gone(self) -> bool:
        """The version that was asked for is too old to go on from."""
        return self.status == GONE
