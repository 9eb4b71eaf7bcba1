"""Which sockets a provider that registers itself may name."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from numalign.errors import InvalidInput
from numalign.rpc.endpoint import plugin_socket, provider_socket


@pytest.fixture
def allowed(run_directory: Path) -> Path:
    directory = run_directory.resolve() / "run"
    (directory / "sub").mkdir(parents=True)
    for name in ("a.sock", "sub/b.sock", "../outside.sock"):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(directory / name))
    (directory / "file").write_text("")
    (directory / "inside").symlink_to(directory / "a.sock")
    (directory / "escape").symlink_to(directory.parent / "outside.sock")
    (directory / "up").symlink_to("/")
    (directory / "loop").symlink_to(directory / "loop")
    return directory


@pytest.mark.parametrize(
    ("name", "found"),
    [
        pytest.param("{}/a.sock", "a.sock", id="path"),
        pytest.param("unix:{}/a.sock", "a.sock", id="unix"),
        pytest.param("unix://{}/sub/b.sock", "sub/b.sock", id="unix with slashes, below"),
        pytest.param("{}/inside", "a.sock", id="a link that stays inside"),
        pytest.param("{}/sub/../a.sock", "a.sock", id="dots that stay inside"),
        pytest.param("{}/later.sock", "later.sock", id="not there yet"),
    ],
)
def test_what_may_be_named(allowed: Path, name: str, found: str) -> None:
    assert provider_socket(name.format(allowed), (allowed,)) == allowed / found


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param("run/a.sock", "absolute path", id="relative"),
        pytest.param("unix:a.sock", "absolute path", id="relative with scheme"),
        pytest.param("unix-abstract:a", "absolute path", id="abstract"),
        pytest.param("dns:///example.com:443", "absolute path", id="a host"),
        pytest.param("unix:@{}", "absolute path", id="abstract by sign"),
        pytest.param("{}/a\0.sock", "absolute path", id="NUL"),
        pytest.param("", "absolute path", id="empty"),
        pytest.param("{}/" + "x" * 120, "at most 107 bytes", id="too long"),
        pytest.param("{}/../outside.sock", "must be below", id="dots that leave"),
        pytest.param("{}/escape", "must be below", id="a link that leaves"),
        pytest.param("{}/up/run/containerd.sock", "must be below", id="a directory that leaves"),
        pytest.param("/run/docker.sock", "must be below", id="another place"),
        pytest.param("{}x/a.sock", "must be below", id="a name that begins alike"),
        pytest.param("{}/file", "is not a socket", id="a file"),
        pytest.param("{}/sub", "is not a socket", id="a directory"),
        pytest.param("{}/loop", "cannot be resolved", id="a loop"),
        pytest.param("{}/file/a.sock", "cannot be resolved", id="below a file"),
    ],
)
def test_what_is_refused(allowed: Path, name: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason) as caught:
        provider_socket(name.format(allowed), (allowed,))

    assert [violation.field for violation in caught.value.violations] == ["endpoint"]


def test_more_directories(allowed: Path) -> None:
    outside = allowed.parent / "outside.sock"

    assert provider_socket(str(outside), (allowed, allowed.parent)) == outside


@pytest.mark.parametrize("name", ["a.sock", "/a.sock", "sub/../a.sock", "inside"])
def test_a_plugin_is_in_its_directory(allowed: Path, name: str) -> None:
    assert plugin_socket(name, allowed) == allowed / "a.sock"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param("../outside.sock", "must be below", id="dots that leave"),
        pytest.param("escape", "must be below", id="a link that leaves"),
        pytest.param("file", "is not a socket", id="a file"),
        pytest.param("", "is not a socket", id="nothing"),
    ],
)
def test_a_plugin_cannot_leave_its_directory(allowed: Path, name: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        plugin_socket(name, allowed)
