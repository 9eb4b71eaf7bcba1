"""The directory of plugins: made by whoever is first of those that start at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from numalign.errors import StartError
from numalign.process.watched_directory import make_watched


def test_it_is_made_for_all_to_read(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "plugins"
    make_watched(directory, "devices")
    make_watched(directory, "devices")

    assert directory.stat().st_mode & 0o777 == 0o755


def test_another_service_makes_it_at_the_same_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = Path.mkdir

    def overtaken(path: Path, **how: Any) -> None:
        make(path, **how)
        make(path, **how)

    monkeypatch.setattr(Path, "mkdir", overtaken)
    make_watched(tmp_path / "plugins", "devices")

    assert (tmp_path / "plugins").is_dir()


def test_a_file_in_its_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "plugins").write_text("")
    with pytest.raises(StartError, match=r"plugins registry .*/plugins: .*File exists"):
        make_watched(tmp_path / "plugins", "devices")
