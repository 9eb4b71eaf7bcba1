from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.fake_api.server import FakeApiServer, fake_api_server

from numalign_agent.api.server import ApiServer, connect


@pytest.fixture
async def fake() -> AsyncIterator[FakeApiServer]:
    async with fake_api_server() as server:
        yield server


@pytest.fixture
async def api(fake: FakeApiServer, tmp_path: Path) -> AsyncIterator[ApiServer]:
    server = await connect(fake.kubeconfig(tmp_path / "kubeconfig"))
    yield server
    await server.close()
