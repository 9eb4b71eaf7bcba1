"""A node in a directory that is short enough for sockets."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.process.second_owner.fake_node import FakeNode


@pytest.fixture
def node() -> Iterator[FakeNode]:
    with tempfile.TemporaryDirectory(prefix="na-") as directory:
        node = FakeNode(Path(directory))
        yield node
        node.close()
