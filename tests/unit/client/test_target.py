"""Addresses of the Admission service."""

from pathlib import Path
from typing import Any

import pytest

from numalign_client.target import target_of


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        pytest.param("/run/a.sock", "unix:///run/a.sock", id="path"),
        pytest.param(Path("/run/a.sock"), "unix:///run/a.sock", id="path-object"),
        pytest.param("unix:///run/a.sock", "unix:///run/a.sock", id="target"),
        pytest.param("localhost:50051", "localhost:50051", id="tcp"),
    ],
)
def test_target(address: Any, expected: Any) -> None:
    assert target_of(address) == expected


def test_a_relative_path_is_taken_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert target_of("a.sock") == f"unix://{tmp_path}/a.sock"


def test_an_empty_address_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        target_of("")
