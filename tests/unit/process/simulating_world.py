"""A node in one process that pods are simulated for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from tests.unit.process.observed_world import pod, settings

from numalign.config.settings import Service
from numalign.process.node import Node
from numalign.process.simulating import Simulations
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb
from numalign.v1.admission_pb2_grpc import AdmissionStub

LONG = 300.0
"""Seconds that a busy machine may take."""


@pytest.fixture(name="node")
async def node_fixture(tmp_path: Path) -> AsyncIterator[Node]:
    """A node with pod `held` on it."""
    opened = await Node.open(settings(tmp_path, secondOwner="tolerate"))
    await opened.serving()
    for part in opened.parts:
        await part.ready()
    stub = AdmissionStub(opened.channel(Service.ADMISSION))
    held = await stub.Admit(ad.AdmitRequest(pod=pod("held", cpu="4")))
    assert held.verdict == pb.VERDICT_ADMITTED
    yield opened
    await opened.close()


@pytest.fixture(name="simulations")
def simulations_fixture(node: Node, tmp_path: Path) -> Simulations:
    return Simulations(settings(tmp_path), node.channel(Service.TOPOLOGY))


async def all_of(simulations: Simulations, **request: Any) -> list[ad.SimulateResponse]:
    async with aclosing(simulations.answers(ad.SimulateRequest(**request))) as answers:
        return [answer async for answer in answers]


async def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


def directories(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "run").glob("simulation-*"))
