"""A short soak, and that a soak notices what is wrong."""

from __future__ import annotations

import os
import random
import sys

import pytest
from tests.soak.faults import KILLS, OTHERS
from tests.soak.figures import Figures
from tests.soak.recovery import recovery
from tests.soak.run import soak
from tests.soak.soak_world import PROCESSES

SEED = int(os.environ.get("NUMALIGN_SOAK_SEED", "0")) or random.SystemRandom().randrange(1, 10**9)
"""Set the variable to repeat a run."""

ADMISSIONS = 360
A_ROUND = 40


@pytest.mark.processes
@pytest.mark.timeout(400)
async def test_short_soak() -> None:
    sys.stderr.write(f"NUMALIGN_SOAK_SEED={SEED}\n")
    figures = await soak(ADMISSIONS, SEED, per_round=A_ROUND)
    sys.stderr.write("".join(f"{line}\n" for line in figures.lines()))

    assert figures.faults == []
    assert figures.stuck == 0
    assert figures.admitted >= ADMISSIONS
    assert figures.looked > figures.judged >= ADMISSIONS // (2 * A_ROUND)
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
