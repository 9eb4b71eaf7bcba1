"""What a worker has done to its pod, behind one interface.

Separate from the worker, which only says when: so the state machine runs in tests without
containers.
"""

from __future__ import annotations

from typing import Protocol

from numalign_agent.workers.work import PodWork


class OperationFailed(Exception):
    """An operation did not come to its end.

    `retry_after` is in seconds; None: the failure says nothing about when to try again.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class PodOperations(Protocol):
    """The three operations (WRK-3). Each may raise OperationFailed, and may be cancelled."""

    async def sync(self, work: PodWork) -> bool:
        """Start and restart containers as the pod wants it; whether the pod is over."""

    async def terminate(self, work: PodWork) -> None:
        """Stop all containers."""

    async def finish(self, work: PodWork) -> None:
        """Give back what the pod holds, and say how it ended."""
