"""Settings from a YAML text, without files, environment or machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from numalign.config.defaults import Defaults, Directories
from numalign.config.from_document import settings_from_document
from numalign.config.settings import MachineSource, Settings
from numalign.document.text import parse_document

CAPACITY = 16 << 30


def _no_file(path: Path) -> object:
    raise AssertionError(f"{path} was asked for")


def _capacity(source: MachineSource) -> int:
    return CAPACITY


def defaults(read_file: Callable[[Path], object] = _no_file) -> Defaults:
    """Defaults as root has them, with a machine of 16 GiB."""
    return Defaults(
        directories=Directories(runtime=Path("/run/numalign"), state=Path("/var/lib/numalign")),
        base_directory=Path("/etc/numalign"),
        read_file=read_file,
        memory_capacity=_capacity,
    )


@pytest.fixture(name="defaults")
def defaults_fixture() -> Callable[..., Defaults]:
    """The function that makes defaults."""
    return defaults


@pytest.fixture
def settings() -> Callable[[str], Settings]:
    """A function from a YAML text to settings."""

    def read(text: str) -> Settings:
        return settings_from_document(parse_document(text, "config.yaml"), defaults())

    return read
