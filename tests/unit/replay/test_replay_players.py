"""Recordings that another package plays."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

from numalign.replay import players
from numalign.replay.recordings import Kind, RecordingError


@pytest.fixture(autouse=True)
def _no_memory() -> Iterator[None]:
    players.player_of.cache_clear()
    yield
    players.player_of.cache_clear()


def test_a_player_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(players, "entry_points", lambda **_: ())

    with pytest.raises(RecordingError, match="no installed package plays recordings of manifests"):
        players.player_of(Kind.MANIFESTS)


def test_an_entry_point_that_is_no_player(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("manifests", "json:dumps", players.GROUP)
    monkeypatch.setattr(players, "entry_points", lambda **_: (entry,))

    with pytest.raises(RecordingError, match="json:dumps is no player"):
        players.player_of(Kind.MANIFESTS)


@pytest.mark.parametrize("kind", [Kind.MANIFESTS, Kind.MERGE_SOURCES])
def test_what_the_agent_plays(kind: Kind) -> None:
    assert isinstance(players.player_of(kind), players.Player)
