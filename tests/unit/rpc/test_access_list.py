"""Access control entries of sockets and directories, as the kernel stores and keeps them."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.errors import ConfigError
from numalign.rpc.access_list import ATTRIBUTE, let_through, packed, restrict_socket, unpacked

USER, GROUP = 2, 8

named = st.dictionaries(
    st.tuples(st.sampled_from([USER, GROUP]), st.integers(0, 2**32 - 2)),
    st.integers(0, 7),
    min_size=1,
)


@pytest.fixture
def path(run_directory: Path) -> Path:
    path = run_directory / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
    return path


@given(st.integers(0, 0o777), named)
def test_what_is_packed_is_unpacked(mode: int, named: dict[tuple[int, int], int]) -> None:
    assert unpacked(packed(mode, named)) == (mode >> 3 & 7, named)


def test_the_kernel_keeps_the_entries(path: Path) -> None:
    restrict_socket(path, 0o600, [1000, 12], [7])

    group, entries = unpacked(os.getxattr(path, ATTRIBUTE))
    assert (group, entries) == (0, {(USER, 1000): 6, (USER, 12): 6, (GROUP, 7): 6})
    assert path.stat().st_mode & 0o707 == 0o600


def test_without_entries_there_is_no_list(path: Path) -> None:
    restrict_socket(path, 0o660, [1000], [])
    restrict_socket(path, 0o640, [], [])

    with pytest.raises(OSError, match=os.strerror(errno.ENODATA)):
        os.getxattr(path, ATTRIBUTE)
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_directory_keeps_what_it_has(run_directory: Path) -> None:
    directory = run_directory / "d"
    directory.mkdir(mode=0o750)
    os.setxattr(directory, ATTRIBUTE, packed(0o750, {(USER, 5): 6}))
    let_through(directory, [5, 6], [7])
    let_through(directory, [6], [])

    group, entries = unpacked(os.getxattr(directory, ATTRIBUTE))
    assert (group, entries) == (5, {(USER, 5): 7, (USER, 6): 1, (GROUP, 7): 1})


@pytest.mark.parametrize(
    ("mode", "uids"),
    [pytest.param(0o755, [5], id="open to all"), pytest.param(0o750, [], id="nobody named")],
)
def test_a_directory_that_is_left_alone(run_directory: Path, mode: int, uids: list[int]) -> None:
    run_directory.chmod(mode)
    let_through(run_directory, uids, [])

    assert ATTRIBUTE not in os.listxattr(run_directory)
    assert run_directory.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize(
    ("code", "text"),
    [
        pytest.param(errno.ENOTSUP, "needs a file system with access lists", id="no lists"),
        pytest.param(errno.EPERM, "cannot set who may use it: Operation not", id="not ours"),
    ],
)
def test_a_list_that_cannot_be_kept_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch, code: int, text: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "setxattr", fail)
    with pytest.raises(ConfigError, match=text):
        restrict_socket(path, 0o660, [5], [])
