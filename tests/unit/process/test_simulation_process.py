"""The process that simulates for a service: how it begins, what it reads, and when it ends."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import pytest
from tests.unit.process.observed_world import GPU, pod
from tests.unit.process.simulating_world import (
    LONG,
    all_of,
    directories,
    node_fixture,
    simulations_fixture,
    until,
)

from numalign.config.settings import Service
from numalign.errors import NumalignError
from numalign.process import simulating
from numalign.process.node import Node
from numalign.process.simulating import Simulations
from numalign.process.simulation_frames import Order, order_bytes, order_from_bytes
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import control_pb2 as ct
from numalign.v1 import types_pb2 as pb
from numalign.v1.admission_pb2_grpc import AdmissionStub
from numalign.v1.control_pb2_grpc import ControlStub

__all__ = ["node_fixture", "simulations_fixture"]


async def test_who_no_longer_wants_the_answers_ends_the_process(
    simulations: Simulations, tmp_path: Path
) -> None:
    async with aclosing(simulations.answers(ad.SimulateRequest(pods=[pod("x")] * 500))) as answers:
        await anext(answers)
        (place,) = directories(tmp_path)
        assert children()
    assert not place.exists()
    assert not children()


async def test_a_call_that_is_cancelled_ends_the_process(node: Node, tmp_path: Path) -> None:
    call = AdmissionStub(node.channel(Service.ADMISSION)).Simulate(
        ad.SimulateRequest(pods=[pod(f"p{i}") for i in range(500)])
    )
    await call.read()
    assert directories(tmp_path)
    call.cancel()
    await until(lambda: not directories(tmp_path) and not children())


def children() -> list[str]:
    """The processes that simulate for this one."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            command = Path(f"/proc/{pid}/cmdline")
            if command.exists() and b"simulation_worker" in command.read_bytes():
                found.append(pid)
    return found


async def test_no_simulation_takes_longer_than_it_may(
    simulations: Simulations, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sleeper = (sys.executable, "-c", "import time; time.sleep(3600)")
    monkeypatch.setattr(simulating, "_COMMAND", sleeper)
    monkeypatch.setattr(simulating, "LONGEST_SECONDS", 1.5)
    with pytest.raises(TimeoutError, match=r"the simulation took longer than 1\.5 s"):
        await all_of(simulations, pods=[pod("x")])
    assert directories(tmp_path) == []


async def test_who_does_not_read_is_cancelled_and_holds_nobody_up(
    simulations: Simulations, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answering = "import os, time; os.write(0, bytes([0, 0, 0, 1]) + b'a'); time.sleep(3600)"
    monkeypatch.setattr(simulating, "_COMMAND", (sys.executable, "-c", answering))
    monkeypatch.setattr(simulating, "LONGEST_SECONDS", 4.0)

    async def reads_once() -> None:
        answers = simulations.answers(ad.SimulateRequest(pods=[pod("x")]))
        async with aclosing(answers):
            await anext(answers)
            await asyncio.Event().wait()

    reading = asyncio.ensure_future(reads_once())
    # On a busy machine its first answer may not come in time.
    with pytest.raises((asyncio.CancelledError, TimeoutError)):
        await reading
    assert directories(tmp_path) == []
    monkeypatch.undo()
    assert len(await all_of(simulations, pods=[pod("x")])) == 2


async def test_a_process_that_ends_early_is_told(
    simulations: Simulations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulating, "_COMMAND", (sys.executable, "-c", "raise SystemExit(3)"))
    with pytest.raises(NumalignError, match="ended early, with status 3"):
        await all_of(simulations, pods=[pod("x")])


async def test_what_a_killed_service_left_behind_is_removed(
    simulations: Simulations, tmp_path: Path
) -> None:
    (tmp_path / "run/simulation-old/state").mkdir(parents=True)
    await all_of(simulations, pods=[pod("x")])
    assert directories(tmp_path) == []


async def test_the_process_ends_when_the_service_is_gone(node: Node, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    control = ControlStub(node.channel(Service.TOPOLOGY))
    configuration = await control.GetConfiguration(ct.GetConfigurationRequest())
    order = Order(
        configuration=json.loads(configuration.document),
        under="",
        policy="",
        scope="",
        inventory=None,
        registered=(),
        admissions=(),
        revision=1,
        node=b"",
        pods=[pod(f"p{i}").SerializeToString() for i in range(1000)],
        explain=pb.EXPLAIN_LEVEL_FULL,
        place=str(place),
        log_format="json",
    )
    assert await asyncio.to_thread(ended_once_alone, order_bytes(order)) == 0
    assert list(place.iterdir()) == []


def ended_once_alone(order: bytes) -> int:
    """The exit status of a process whose service goes while it answers."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "numalign.process.simulation_worker"]
    with theirs, subprocess.Popen(command, stdin=theirs.fileno()) as process:
        with ours:
            ours.sendall(len(order).to_bytes(4) + order)
            # It has begun to answer, and cannot end: nobody reads what it says.
            assert ours.recv(4)
        return process.wait(LONG)


def test_an_order_is_read_as_it_was_written() -> None:
    order = Order(
        configuration={"a": 1},
        under="b: 2",
        policy="none",
        scope="pod",
        inventory=[{"resource": GPU, "devices": []}],
        registered=["licences"],
        admissions=[(b"\0record", b"\xffpod")],
        revision=7,
        node=b"node",
        pods=[b"one", b""],
        explain=2,
        place="/place",
        log_format="console",
    )
    assert order_from_bytes(order_bytes(order)) == order


def test_a_service_imports_none_of_it_at_its_start() -> None:
    code = (
        "import sys, numalign.process.admission_part; "
        "print([name for name in sys.modules if 'simulat' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"
