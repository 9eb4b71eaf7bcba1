"""An admitter over doubles of Admission and of what a decision brings about."""

# ruff: noqa: ARG002 - arguments are those of what it stands in for

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.unit.agent.admitting.admission_double import (
    AdmissionDouble,
)
from tests.unit.agent.made import pod

from numalign.telemetry.metrics import Metrics
from numalign.v1 import admission_pb2 as ad
from numalign_agent.admitting import admitter as module
from numalign_agent.admitting import persisting
from numalign_agent.admitting.admitter import Admitter, Skipping
from numalign_agent.loop.pause import Pause
from numalign_agent.metrics import AGENT
from numalign_agent.pod import AgentPod
from numalign_agent.pods.manager import PodManager


class Effects:
    """Writes down what a decision brings about; `noting` can be held."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []
        self.noting = asyncio.Event()
        self.noting.set()

    async def note(self, pod: AgentPod, verdict: str, answer: ad.AdmitResponse) -> None:
        await self.noting.wait()

    def admitted(self, pod: AgentPod, asked: AgentPod, answer: ad.AdmitResponse) -> None:
        self.seen.append(("admitted", pod.uid))

    def rejected(self, pod: AgentPod, reason: str, message: str) -> None:
        self.seen.append(("rejected", pod.uid, reason, message))

    def deferred(self, pod: AgentPod, answer: ad.AdmitResponse) -> None:
        self.seen.append(("deferred", pod.uid, answer.reason))

    def begin(self, pod: AgentPod) -> None:
        self.seen.append(("not asked", pod.uid))


class World:
    def __init__(self, ranks: Mapping[str, int]) -> None:
        self.calls = AdmissionDouble()
        self.pods = PodManager()
        self.effects = Effects()
        self.ended: list[str] = []
        self.metrics = Metrics(AGENT, enabled=True)
        self.sources_ready = True
        self.admitter = Admitter(
            self.calls,  # type: ignore[arg-type]
            self.pods,
            self.effects,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            Skipping(lambda of: of.deletion_timestamp is not None, self.effects.begin),
            ranks=ranks,
            sources_ready=lambda: self.sources_ready,
            metrics=self.metrics,
        )

    async def end(self, victims: Any) -> None:
        self.ended += [victim.pod_uid for victim in victims]

    def add(self, *names: str, **fields: Any) -> None:
        for name in names:
            self.pods.put(pod(name, **fields))
        self.admitter.add(f"uid-{name}" for name in names)

    def remove(self, name: str) -> None:
        self.pods.remove(pod(name))
        self.admitter.forget(f"uid-{name}")

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not true():  # noqa: ASYNC110 - no event says it
                await asyncio.sleep(0.001)

    async def decided(self) -> list[tuple[Any, ...]]:
        await self.until(lambda: not self.admitter.undecided)
        return self.effects.seen


@asynccontextmanager
async def world(**ranks: int) -> AsyncIterator[World]:
    made = World({f"uid-{name}": rank for name, rank in ranks.items()})
    task = asyncio.create_task(made.admitter.run())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture(autouse=True, name="fast")
def fast_fixture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries that take no time, where they are not what a test is about."""
    for caller in (module, persisting):
        monkeypatch.setattr(caller, "Pause", lambda: Pause(0.001))
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.02)
