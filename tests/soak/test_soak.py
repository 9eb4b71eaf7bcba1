"""A short soak, and that a soak notices what is wrong."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.integration.uptime import may_add_uptime
from tests.soak.faults import KILLS, OTHERS
from tests.soak.figures import Figures
from tests.soak.recovery import recovery
from tests.soak.run import soak
from tests.soak.soak_world import PROCESSES
from tests.soak.wall_clock import wall_clock

SEED = int(os.environ.get("NUMALIGN_SOAK_SEED", "0")) or random.SystemRandom().randrange(1, 10**9)
"""Set the variable to repeat a run."""

ADMISSIONS = 360
A_ROUND = 40


@pytest.mark.processes
@pytest.mark.timeout(400)
async def test_short_soak() -> None:
    sys.stderr.write(f"NUMALIGN_SOAK_SEED={SEED}\n")
    figures = await soak(ADMISSIONS, SEED, per_round=A_ROUND, rounds=4)
    sys.stderr.write("".join(f"{line}\n" for line in figures.lines()))

    assert figures.faults == []
    assert figures.stuck == 0
    assert figures.admitted >= ADMISSIONS
    assert figures.prepared > figures.judged
    assert figures.looked > figures.judged >= 4
    assert set(figures.injected) & set(KILLS)
    assert set(figures.injected) & set(OTHERS)
    assert set(figures.memory) == set(PROCESSES)
    # Short as it is, warm-up is hardly over; a leak in every call would be more than this.
    assert figures.growth < 0.25


@pytest.mark.processes
@pytest.mark.timeout(200)
async def test_recovery_with_many_pods() -> None:
    measured = await recovery(500)

    assert set(measured.each) == set(PROCESSES)
    # The figure to reach is one second; a busy machine that runs other tests is given more.
    assert measured.every < 10.0
    assert max(measured.each.values()) < 10.0


def test_faults_are_told_apart() -> None:
    figures = Figures(
        1,
        faults=[
            "kubelet0: pod a was admitted and is gone",
            "cpu: 3 is held by ('a', 'c') and b",
            "cpu is not serving: status",
        ],
        memory={"cpu": (100, 104), "memory": (100, 101)},
    )

    assert (figures.lost, figures.doubled) == (1, 1)
    assert figures.growth == pytest.approx(0.04)
    assert any(
        line.startswith("other contradictions") and line.endswith(" 1") for line in figures.lines()
    )
    assert "FAULT cpu is not serving: status" in figures.lines()


@pytest.mark.processes
@pytest.mark.timeout(200)
async def test_clocks_that_are_wrong_change_nothing(tmp_path: Path) -> None:
    clocks = ("clock jumps", "other uptime")
    if wall_clock(tmp_path) is None or not may_add_uptime():
        pytest.skip("it takes a C compiler (cc) and a kernel that allows time namespaces")
    # The first round has the fault that kills, the second one the other.
    figures = await soak(60, SEED, per_round=20, only=clocks, rounds=2)

    assert figures.faults == []
    assert figures.stuck == 0
    assert set(figures.injected) == set(clocks)


READS_THE_CLOCK = """
import sys, time
for _ in sys.stdin:
    print(time.time(), time.monotonic(), flush=True)
"""


def test_the_wall_clock_of_a_running_process_jumps(tmp_path: Path) -> None:
    clock = wall_clock(tmp_path)
    if clock is None:
        pytest.skip("there is no C compiler (cc)")
    walls, forward = [], []
    with subprocess.Popen(
        [sys.executable, "-c", READS_THE_CLOCK],
        env={**os.environ, **clock.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for seconds in (0, 86_400, -86_400, 0):
            clock.jump(seconds)
            process.stdin.write("\n")
            process.stdin.flush()
            wall, monotonic = map(float, process.stdout.readline().split())
            walls.append(round((wall - time.time()) / 86_400))
            forward.append(monotonic)
        process.stdin.close()

    assert walls == [0, 1, -1, 0]
    assert forward == sorted(forward)


def test_a_process_finds_another_uptime() -> None:
    if not may_add_uptime():
        pytest.skip("the kernel refuses a time namespace")
    script = (
        "import time; from tests.integration.uptime import add_uptime\n"
        "before = time.monotonic(); add_uptime(86_400); print(time.monotonic() - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )

    assert round(float(done.stdout) / 86_400) == 1
