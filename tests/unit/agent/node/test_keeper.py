"""Looking again and again: what is said, counted and done about what is not ready."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from tests.unit.agent.api.pods import until

from numalign.telemetry.metrics import Metrics
from numalign_agent.node.keeper import NodeKeeper
from numalign_agent.node.metrics import NODE

AWAY = {"cpu": "nobody answers at /cpu.sock"}
BOTH = {**AWAY, "runtime": "not connected"}


class Parts:
    """What is missing at each look; the last one goes on."""

    def __init__(self, *looks: Mapping[str, str]) -> None:
        self.parts = ("admission", "cpu", "runtime")
        self._looks = list(looks)

    async def missing(self) -> Mapping[str, str]:
        return self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]


class Taint:
    """Hears whether all is ready."""

    def __init__(self) -> None:
        self.heard: list[bool] = []

    async def look(self, *, ready: bool, **_: float) -> None:
        self.heard.append(ready)


async def test_changes_are_said_once_and_the_taint_hears_of_every_look(
    capsys: pytest.CaptureFixture[str],
) -> None:
    parts, taint = Parts(AWAY, AWAY, BOTH, {}, {}), Taint()
    metrics = Metrics(NODE, enabled=True)
    keeper = NodeKeeper(
        parts,  # type: ignore[arg-type]
        taint,  # type: ignore[arg-type]
        0.0,
        metrics,
    )
    before = keeper.not_ready()
    running = asyncio.create_task(keeper.run())
    await until(lambda: len(taint.heard) >= 5)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    said = [line for line in capsys.readouterr().err.splitlines() if "not ready" in line]

    assert before == "nobody has been asked yet"
    assert keeper.not_ready() is None
    assert taint.heard[:5] == [False, False, False, True, True]
    assert ["/cpu.sock" in line for line in said] == [True, True]
    assert ["not connected" in line for line in said] == [False, True]


async def test_what_is_missing_is_counted_by_part_with_or_without_a_taint() -> None:
    metrics = Metrics(NODE, enabled=True)
    keeper = NodeKeeper(Parts(BOTH), None, 1000.0, metrics)  # type: ignore[arg-type]
    running = asyncio.create_task(keeper.run())
    await until(lambda: keeper.not_ready() != "nobody has been asked yet")
    running.cancel()
    page = metrics.text()

    assert keeper.not_ready() == "cpu: nobody answers at /cpu.sock; runtime: not connected"
    assert "numalign_agent_node_ready 0.0" in page
    for part, ready in {"admission": 1.0, "cpu": 0.0, "runtime": 0.0}.items():
        assert f'numalign_agent_node_part_ready{{part="{part}"}} {ready}' in page
