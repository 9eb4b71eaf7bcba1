"""A node's shutdown as a logind on a real message bus announces it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.dbus_daemon import Daemon, logind
from tests.integration.node_document import document, pod
from tests.integration.one_node import OneNode

from numalign.config.loader import load_settings
from numalign.kube.pod_json import node_from_json
from numalign.process.node import Node
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

pytestmark = pytest.mark.processes


@pytest.fixture
def directory() -> Iterator[Path]:
    """A short path, as a socket's name has little room."""
    with tempfile.TemporaryDirectory(prefix="na-") as name:
        yield Path(name)


@pytest.fixture
def daemon(directory: Path) -> Iterator[Daemon]:
    daemon = Daemon(directory)
    daemon.start()
    yield daemon
    daemon.stop()


@asynccontextmanager
async def _opened(directory: Path, daemon: Daemon, **kubelet: Any) -> AsyncIterator[OneNode]:
    """A node that watches the logind on that bus, and knows its Node object."""
    (directory / "root").mkdir(exist_ok=True)
    shutdown = {"source": "logind", "bus": daemon.address}
    keys = document(directory, hostRoot=str(directory / "root"), admission={"shutdown": shutdown})
    path = directory / "config.yaml"
    path.write_text(yaml.safe_dump(keys | {"shutdownGracePeriod": "30s"} | kubelet))
    node = await Node.open(load_settings(path, os.environ, is_root=False))
    try:
        await node.serving()
        one = OneNode(node)
        allocatable = {"cpu": "14", "memory": "31Gi", "pods": "10", "example.com/gpu": "0"}
        given = {"metadata": {"name": "n"}, "status": {"allocatable": allocatable}}
        await one.admission.SetNode(ad.SetNodeRequest(node=node_from_json(given)))
        yield one
    finally:
        await node.close()


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - no event says it
            await asyncio.sleep(0.01)


async def _until_refused(one: OneNode, uid: str, reason: str) -> None:
    async with asyncio.timeout(60):
        while await _reason(one, uid) != reason:  # noqa: ASYNC110 - no event says it
            await asyncio.sleep(0.01)


async def _reason(one: OneNode, uid: str) -> str:
    return (await one.admission.Admit(ad.AdmitRequest(pod=pod(uid), dry_run=True))).reason


async def test_no_pod_starts_while_the_node_shuts_down(directory: Path, daemon: Daemon) -> None:
    """SHUT-1, SHUT-3: the lock delays it until admitted pods have ended."""
    async with logind(daemon) as manager, _opened(directory, daemon) as one:
        await _until(lambda: len(manager.inhibitors) == 1)
        admitted = await one.admission.Admit(ad.AdmitRequest(pod=pod("a")))
        manager.PrepareForShutdown(True)
        await _until_refused(one, "b", "NodeShutdown")
        held = manager.is_held(0)
        await one.admission.Release(ad.ReleaseRequest(pod_uid="a"))
        await _until(lambda: not manager.is_held(0))
        manager.PrepareForShutdown(False)
        await _until_refused(one, "b", "")
        await _until(lambda: len(manager.inhibitors) == 2)
        held_again = manager.is_held(1)

    assert admitted.verdict == pb.VERDICT_ADMITTED
    assert held
    assert held_again
    assert manager.inhibitors[0] == (
        "shutdown",
        "numalign",
        "admitted pods are to end first",
        "delay",
    )


async def test_a_bus_that_is_restarted(directory: Path, daemon: Daemon) -> None:
    """What was announced meanwhile is read when it is back."""
    async with _opened(directory, daemon) as one:
        async with logind(daemon) as manager:
            await _until(lambda: len(manager.inhibitors) == 1)
        daemon.stop()
        before = await _reason(one, "a")
        daemon.start()
        async with logind(daemon) as manager:
            manager.preparing = True
            await _until_refused(one, "a", "NodeShutdown")
            given = len(manager.inhibitors)

    assert before == ""
    assert given == 0


async def test_without_grace_periods_nothing_is_watched(directory: Path, daemon: Daemon) -> None:
    """SHUT-2."""
    async with (
        logind(daemon) as manager,
        _opened(directory, daemon, shutdownGracePeriod="0s") as one,
    ):
        manager.PrepareForShutdown(True)
        await asyncio.sleep(0.1)
        reason = await _reason(one, "a")

    assert reason == ""
    assert manager.inhibitors == []


async def test_a_bus_that_is_not_there_stops_nothing(directory: Path) -> None:
    async with _opened(directory, Daemon(directory / "nowhere")) as one:
        reason = await _reason(one, "a")

    assert reason == ""
