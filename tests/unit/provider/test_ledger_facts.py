"""Facts about the machine that change: told to watchers at once, stored where they have to be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.provider.ledger_world import ListEngine, State, ledger_in

from numalign.errors import StateError


class Counting(ListEngine):
    """Counts how often its state is written out."""

    encoded = 0

    def encode(self, state: State) -> bytes:
        self.encoded += 1
        return super().encode(state)


async def test_a_state_that_stays_as_it_is_is_told_of_and_not_written(tmp_path: Path) -> None:
    engine = Counting()
    async with ledger_in(tmp_path, engine) as (ledger, _):
        before, written = ledger.revision, engine.encoded
        await ledger.facts_changed(lambda state: state)

        assert ledger.revision == before + 1
        assert engine.encoded == written


async def test_another_state_is_stored(tmp_path: Path) -> None:
    async with ledger_in(tmp_path) as (ledger, _):
        await ledger.facts_changed(lambda _: ("a",))
    async with ledger_in(tmp_path) as (ledger, _):
        assert ledger.state == ("a",)


async def test_what_could_not_be_stored_is_stored_with_the_next_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise StateError("no space left")

    async with ledger_in(tmp_path) as (ledger, database):
        with monkeypatch.context() as full:
            full.setattr(database, "write", refuse)
            with pytest.raises(StateError):
                await ledger.facts_changed(lambda _: ("a",))
        assert ledger.state == ("a",)
        await ledger.facts_changed(lambda state: state)
    async with ledger_in(tmp_path) as (ledger, _):
        assert ledger.state == ("a",)
