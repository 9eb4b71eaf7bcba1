"""What tests of the agent share: a process that forks agents and services, and short paths."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.agent_world import Zygote


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    made = Zygote()
    yield made
    made.close()


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory whose name is short enough for sockets."""
    made = Path(tempfile.mkdtemp(prefix="na"))
    yield made
    shutil.rmtree(made, ignore_errors=True)
