"""The way into the console commands."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable

import pytest

from numalign.entry import run


def _module(monkeypatch: pytest.MonkeyPatch, main: Callable[[], None]) -> None:
    module = types.ModuleType("some_command")
    module.main = main  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "some_command", module)


def test_the_command_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    _module(monkeypatch, lambda: calls.append("ran"))

    run("tool", "some_command", extra="service")

    assert calls == ["ran"]


def test_a_package_that_is_missing_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def main() -> None:
        raise ModuleNotFoundError("No module named 'click.core'", name="click.core")

    _module(monkeypatch, main)

    with pytest.raises(SystemExit) as ended:
        run("tool", "some_command", extra="service")
    assert ended.value.code == (
        "tool: the package that click comes with is not installed: pip install 'numalign[service]'"
    )


@pytest.mark.parametrize("name", [None, "numalign.nothing"])
def test_what_is_our_own_fault_is_not_explained_away(
    monkeypatch: pytest.MonkeyPatch, name: str | None
) -> None:
    def main() -> None:
        raise ModuleNotFoundError("no", name=name)

    _module(monkeypatch, main)

    with pytest.raises(ModuleNotFoundError):
        run("tool", "some_command", extra="service")
