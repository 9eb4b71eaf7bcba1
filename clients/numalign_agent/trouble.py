"""Troubles with files and servers: kept for whoever asks, and logged when they come, change or end.

Separate from whoever has them, so that what is wrong for hours is one line in the log of each.
"""

from __future__ import annotations

from collections.abc import Mapping

from numalign.telemetry.logs import Logger


class Troubles:
    """What cannot be used at present, by path or address, and why."""

    def __init__(self, log: Logger) -> None:
        self._log = log
        self._known: dict[str, str] = {}

    def current(self) -> Mapping[str, str]:
        """A copy of what is wrong now."""
        return dict(self._known)

    def say(self, place: str, why: str) -> None:
        """Something is wrong at `place`."""
        if self._known.get(place) != why:
            self._known[place] = why
            self._log.warning("cannot use", place=place, why=why)

    def mended(self, place: str) -> None:
        """All is well at `place`."""
        if self._known.pop(place, None) is not None:
            self._log.info("can be used again", place=place)

    def only(self, found: Mapping[str, str]) -> None:
        """These are all the troubles that there are."""
        for place in self._known.keys() - found.keys():
            self.mended(place)
        for place, why in found.items():
            self.say(place, why)
