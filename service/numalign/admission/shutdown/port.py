"""What the watch of a shutdown needs of whoever announces it.

Separate so that the watch knows nothing of D-Bus.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol


class AnnouncerGone(Exception):
    """The announcer cannot be reached, or is gone; the text says why."""


class Delay(Protocol):
    """A lock that delays the shutdown while it is held."""

    def release(self) -> None:
        """Let the shutdown go on. May be called again."""


class Announcer(Protocol):
    """Announces that the node is about to shut down. Every call may raise AnnouncerGone."""

    async def longest_delay(self) -> float:
        """Seconds for which a shutdown can be delayed at all."""

    async def is_preparing(self) -> bool:
        """Whether a shutdown is announced and not taken back."""

    async def delay(self) -> Delay:
        """Take a lock that delays a shutdown which is not announced yet."""

    def announcements(self) -> AsyncIterator[bool]:
        """True for every shutdown that is announced, False where it is taken back."""


class OpenAnnouncer(Protocol):
    """Connects to an announcer, for the time of a `with` block."""

    def __call__(self) -> AbstractAsyncContextManager[Announcer]:
        """Raises AnnouncerGone."""
