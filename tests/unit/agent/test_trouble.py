"""Troubles are logged when they come, change and end, and not in between."""

from __future__ import annotations

from typing import Any, cast

from numalign_agent.trouble import Troubles


class Log:
    """What was logged since it was last asked, as level and place."""

    def __init__(self) -> None:
        self._lines: list[tuple[str, str]] = []

    def warning(self, _: str, *, place: str, **__: Any) -> None:
        self._lines.append(("warning", place))

    def info(self, _: str, *, place: str, **__: Any) -> None:
        self._lines.append(("info", place))

    def lines(self) -> list[tuple[str, str]]:
        lines, self._lines = self._lines, []
        return lines


def test_one_line_for_each_change() -> None:
    log = Log()
    troubles = Troubles(cast("Any", log))

    troubles.say("a", "bad")
    assert log.lines() == [("warning", "a")]
    troubles.say("a", "bad")
    assert log.lines() == []
    troubles.only({"a": "worse", "b": "bad"})
    assert log.lines() == [("warning", "a"), ("warning", "b")]
    assert troubles.current() == {"a": "worse", "b": "bad"}

    troubles.only({"b": "bad"})
    assert log.lines() == [("info", "a")]
    troubles.mended("b")
    troubles.mended("b")
    assert log.lines() == [("info", "b")]
    assert troubles.current() == {}
