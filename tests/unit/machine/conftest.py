"""Captured sysfs trees, unpacked once per test session."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parents[2] / "fixtures" / "sysfs"


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A function from the name of a captured tree to the directory it is unpacked in."""
    directory = tmp_path_factory.mktemp("sysfs")

    def unpack(name: str) -> Path:
        root = directory / name
        if not root.exists():
            with tarfile.open(FIXTURES / f"{name}.tar.gz") as archive:
                archive.extractall(root, filter="fully_trusted")
        return root

    return unpack
