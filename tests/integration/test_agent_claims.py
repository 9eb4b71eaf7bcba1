"""An agent whose pod has a resource claim: read from the API server, prepared by a real driver."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.integration.agent_world import Zygote
from tests.integration.dra_world import DRIVER, Place
from tests.integration.plugin_world import end
from tests.integration.test_agent_with_api import World, world

from numalign_agent.loop import sync_loop

pytestmark = pytest.mark.processes

RESULT = {"request": "r", "driver": DRIVER, "pool": "files", "device": "card-0"}


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync_loop, "SYNC_SECONDS", 0.1)
    monkeypatch.setattr(sync_loop, "HOUSEKEEPING_SECONDS", 0.2)


def claim_for(on: World, pod: dict[str, Any], files: Path) -> None:
    """What a scheduler does: a claim that is allocated, and reserved for the pod."""
    uid = pod["metadata"]["uid"]
    status = {
        "allocation": {"devices": {"results": [RESULT]}},
        "reservedFor": [{"resource": "pods", "name": "web", "uid": uid}],
    }
    made = on.server.store.create(
        "resourceclaims", "default", {"metadata": {"name": "c1"}, "status": status}
    )
    (files / "default.c1.json").write_text(json.dumps(made))


async def test_a_pod_starts_when_its_claim_is_prepared(zygote: Zygote, directory: Path) -> None:
    files = Place(directory)
    files.device("card-0")
    section = {"enabled": True, "pluginsRegistry": str(files.path("pr")), "retryAfter": "100ms"}
    try:
        async with world(zygote, directory, dra=section) as on:
            pod = on.bind("web", "2", resourceClaims=[{"name": "k", "resourceClaimName": "c1"}])
            await on.until(["web"], lambda: on.events("FailedPrepareDynamicResources")[:1])
            claim_for(on, pod, files.path("claims"))
            before = on.told("start")
            driver = files.driver()
            await on.until("Running", lambda: on.phase("web"))
            held = len(files.left())
            on.server.store.delete("pods", "default", "web", {})
            await on.until("gone", lambda: on.phase("web"))
            await on.until([], files.left)
        assert driver.poll() is None
    finally:
        for process in files.processes:
            end(process, signal.SIGKILL)

    assert (before, held) == ([], 1)
    assert len(files.done()) == 2
    assert set(files.done().values()) == {1}
