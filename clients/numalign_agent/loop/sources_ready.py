"""Whether every source of pods has been heard (MERGE-6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable


class SourcesReady:
    """All configured sources are delivered, and were seen by the loop.

    `delivered` gives the names of those whose first set was merged.
    """

    def __init__(self, configured: Iterable[str], delivered: Callable[[], Iterable[str]]) -> None:
        self._configured = frozenset(configured)
        self._delivered = delivered
        self._seen: set[str] = set()

    def seen(self, source: str) -> None:
        """The loop has handled a message of this source."""
        self._seen.add(source)

    def __call__(self) -> bool:
        """Whether all are ready; without sources they are."""
        return self._configured <= self._seen & set(self._delivered())

    def missing(self) -> tuple[str, ...]:
        """The sources that are not ready, by name."""
        return tuple(sorted(self._configured - (self._seen & set(self._delivered()))))
