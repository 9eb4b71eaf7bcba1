"""What all deployments share: the image, built once, and the container runtime that has it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.e2e.containerd import Containerd, check_machine
from tests.e2e.deploy.builder import built_image
from tests.e2e.deploy.deployment import image_of, runtime


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file that a container runtime imports it from."""
    check_machine()
    path = tmp_path_factory.mktemp("image") / "image.tar"
    built_image(image_of("base"), path)
    yield path
    path.unlink()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def containerd(image: Path) -> AsyncIterator[Containerd]:
    """One deployment at a time runs in it."""
    async with runtime(image) as running:
        yield running
