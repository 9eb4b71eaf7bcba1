"""Keeping five processes up, with small programs in the place of services."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from numalign.config.settings import CORE_SERVICES, Service
from numalign.process import supervise
from numalign.process.supervise import Supervisor, command_of

_WAITS = """
import pathlib, signal, socket, sys
listening = socket.socket(socket.AF_UNIX)
pathlib.Path(sys.argv[3]).unlink(missing_ok=True)
listening.bind(sys.argv[3])
listening.listen()
starts, seen = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
signal.signal(signal.SIGTERM, lambda *_: sys.exit({code}))
signal.signal(signal.SIGHUP, lambda *_: seen.write_text("hup"))
with starts.open("a") as file:
    file.write("x")
while True:
    signal.pause()
"""


@pytest.fixture
def starts(tmp_path: Path) -> Callable[[Service], int]:
    """How often a service was started."""

    def count(service: Service) -> int:
        path = tmp_path / f"{service.value}.starts"
        return len(path.read_text()) if path.exists() else 0

    return count


def sockets(tmp_path: Path) -> dict[Service, Path]:
    return {service: tmp_path / f"{service.value}.sock" for service in CORE_SERVICES}


def supervisor(tmp_path: Path, **programs: Any) -> Supervisor:
    return Supervisor(program(tmp_path, **programs), sockets(tmp_path))


def program(
    tmp_path: Path, *, code: int = 0, others: dict[Service, str] | None = None
) -> Callable[[Service], tuple[str, ...]]:
    def command(service: Service) -> tuple[str, ...]:
        text = (others or {}).get(service, _WAITS.format(code=code))
        files = (f"{tmp_path}/{service.value}.starts", f"{tmp_path}/{service.value}.seen")
        return (sys.executable, "-c", text, *files, str(sockets(tmp_path)[service]))

    return command


def _tells_its_pid(path: Path) -> str:
    return f"import os, pathlib; pathlib.Path({str(path)!r}).write_text(str(os.getpid()))\n"


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - other processes know no event
            await asyncio.sleep(0.02)


async def all_started(starts: Callable[[Service], int]) -> None:
    await eventually(lambda: all(starts(service) for service in CORE_SERVICES))


@pytest.mark.parametrize(
    ("code", "expected"), [pytest.param(0, 0, id="in-order"), pytest.param(3, 1, id="failing")]
)
async def test_a_signal_stops_all(
    tmp_path: Path, starts: Callable[[Service], int], code: int, expected: int
) -> None:
    running = asyncio.create_task(supervisor(tmp_path, code=code).run())
    await all_started(starts)
    os.kill(os.getpid(), signal.SIGTERM)

    assert await asyncio.wait_for(running, 60) == expected
    assert [starts(service) for service in CORE_SERVICES] == [1] * 5


async def test_a_hang_up_is_passed_on(tmp_path: Path, starts: Callable[[Service], int]) -> None:
    running = asyncio.create_task(supervisor(tmp_path).run())
    await all_started(starts)
    os.kill(os.getpid(), signal.SIGHUP)
    await eventually(lambda: all((tmp_path / f"{s.value}.seen").exists() for s in CORE_SERVICES))
    os.kill(os.getpid(), signal.SIGINT)

    assert await asyncio.wait_for(running, 60) == 0


async def test_a_service_that_was_killed_is_started_again(
    tmp_path: Path, starts: Callable[[Service], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervise, "FIRST_WAIT_SECONDS", 0.01)
    pid = tmp_path / "pid"
    others = {Service.CPU: _tells_its_pid(pid) + _WAITS.format(code=0)}
    running = asyncio.create_task(supervisor(tmp_path, others=others).run())
    await all_started(starts)
    os.kill(int(pid.read_text()), signal.SIGKILL)
    await eventually(lambda: starts(Service.CPU) == 2)
    os.kill(os.getpid(), signal.SIGTERM)

    assert await asyncio.wait_for(running, 60) == 0
    assert starts(Service.MEMORY) == 1


async def test_a_service_that_cannot_start_ends_all(tmp_path: Path) -> None:
    others = {Service.TOPOLOGY: "raise SystemExit(1)"}

    assert await asyncio.wait_for(supervisor(tmp_path, others=others).run(), 60) == 1


async def test_a_second_one_on_the_same_sockets_ends_at_once(
    tmp_path: Path, starts: Callable[[Service], int]
) -> None:
    first = supervisor(tmp_path)
    running = asyncio.create_task(first.run())
    await all_started(starts)
    await eventually(lambda: first._served == set(CORE_SERVICES))
    # Long enough for somebody who looks to find the sockets of the first.
    refused = "import sys, time; time.sleep(0.5); sys.exit(1)"
    second = supervisor(tmp_path, others=dict.fromkeys(Service, refused))

    assert await asyncio.wait_for(second.run(), 60) == 1
    assert second._served == set()
    assert [starts(service) for service in CORE_SERVICES] == [1] * 5
    first._stop()
    assert await asyncio.wait_for(running, 60) == 0


async def test_a_service_that_does_not_stop_is_ended(
    tmp_path: Path, starts: Callable[[Service], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervise, "STOPPING_SECONDS", 0.2)
    deaf = _WAITS.format(code=0).replace("sys.exit(0)", "None")
    running = asyncio.create_task(supervisor(tmp_path, others={Service.DEVICE: deaf}).run())
    await all_started(starts)
    os.kill(os.getpid(), signal.SIGTERM)

    assert await asyncio.wait_for(running, 60) == 1


def test_the_command_of_a_service() -> None:
    command = command_of(Path("/c.yaml"), {"runtimeDirectory": "/r", "stateDirectory": "/s"})

    assert command(Service.CPU) == (
        *(sys.executable, "-m", "numalign.cli", "serve", "cpu", "--config", "/c.yaml"),
        *("--runtime-directory", "/r", "--state-directory", "/s"),
    )


async def test_a_service_that_served_may_fail_later(
    tmp_path: Path, starts: Callable[[Service], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervise, "FIRST_WAIT_SECONDS", 0.01)
    pid = tmp_path / "pid"
    watched = supervisor(
        tmp_path, others={Service.CPU: _tells_its_pid(pid) + _WAITS.format(code=1)}
    )
    running = asyncio.create_task(watched.run())
    await all_started(starts)
    await eventually(lambda: Service.CPU in watched._served)
    os.kill(int(pid.read_text()), signal.SIGTERM)
    await eventually(lambda: starts(Service.CPU) == 2)
    os.kill(os.getpid(), signal.SIGTERM)

    assert await asyncio.wait_for(running, 60) == 1
