"""A node that runs, for commands that look at one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml
from tests.integration.served_node import ServedNode
from tests.unit.process.observed_world import document, pod

from numalign.v1 import types_pb2 as pb


@pytest.fixture(scope="package")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedNode]:
    """A node with pod `a` on it; the tests only look."""
    directory = tmp_path_factory.mktemp("sim")
    served = ServedNode(directory)
    written = document(directory, secondOwner="tolerate")
    (directory / "config.yaml").write_text(yaml.safe_dump(written))
    served.start("all")
    assert served.admit(pod("a", cpu="4")).verdict == pb.VERDICT_ADMITTED
    yield served
    served.stop()
