"""What the runtime's events have told lately, and its whole picture may not show yet.

A runtime tells that a pod or container begins before it puts it on its list, and that it has
ended before it takes it off. A picture that is taken in between is behind the events.
"""

from __future__ import annotations

LATELY = 30.0
"""Seconds for which an event goes before a picture."""


class Heard:
    """Ids of sandboxes and containers, with when an event told of their begin or their end."""

    def __init__(self) -> None:
        self._begun: dict[str, float] = {}
        self._ended: dict[str, float] = {}

    def begun(self, id_: str, now: float) -> None:
        """An event told that it begins."""
        self._ended.pop(id_, None)
        self._begun[id_] = now

    def ended(self, id_: str, now: float) -> None:
        """An event told that it has ended."""
        self._begun.pop(id_, None)
        self._ended[id_] = now

    def has_begun(self, id_: str, now: float) -> bool:
        """Whether it began lately: a picture without it does not mean that it is gone."""
        return now - self._begun.get(id_, -LATELY) < LATELY

    def has_ended(self, id_: str, now: float) -> bool:
        """Whether it ended lately: a picture that shows it does not mean that it is there."""
        return now - self._ended.get(id_, -LATELY) < LATELY

    def forget_all(self) -> None:
        """There is a new connection: what was told over the last one is on the list, or gone."""
        self._begun.clear()
        self._ended.clear()

    def forget_old(self, now: float) -> None:
        """Forget what is not of late any more."""
        for told in (self._begun, self._ended):
            for id_ in [id_ for id_, at in told.items() if now - at >= LATELY]:
                del told[id_]
