"""Sockets in the watched directory."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from numalign.plugins.sockets import watched_sockets


@pytest.fixture(name="directory")
def short_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="na-") as made:
        yield Path(made)


def make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def test_sockets_at_any_depth_but_nothing_hidden(directory: Path) -> None:
    for name in ("a.sock", "below/deep/b.sock", ".hidden.sock", ".below/c.sock"):
        make(directory / name)
    (directory / "file").touch()

    assert set(watched_sockets(directory)) == {
        directory / "a.sock",
        directory / "below" / "deep" / "b.sock",
    }


def test_a_socket_made_anew_is_another(directory: Path) -> None:
    path = directory / "a.sock"
    make(path)
    before = watched_sockets(directory)[path]
    path.unlink()
    make(path)

    assert watched_sockets(directory)[path] != before


def test_permissions_do_not_make_it_another(directory: Path) -> None:
    path = directory / "a.sock"
    make(path)
    before = watched_sockets(directory)[path]
    path.chmod(0o600)

    assert watched_sockets(directory)[path] == before


def test_a_directory_that_is_not_there(directory: Path) -> None:
    with pytest.raises(FileNotFoundError):
        watched_sockets(directory / "gone")
