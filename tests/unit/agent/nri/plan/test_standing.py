"""Where a container is to run, by how its pod stands."""

from __future__ import annotations

import pytest

from numalign.model.cpu_set import NO_CPUS, CpuSet
from numalign_agent.nri.plan.pinning import Pinning
from numalign_agent.nri.plan.standing import Standing, pinning_of, shared_pool

POOL = CpuSet.parse("0-3")
OWN = Pinning(CpuSet.parse("4-5"), CpuSet.parse("1"), exclusive=True)
MEMORY = Pinning(mems=CpuSet.parse("0"))
GRANTS = {"own": OWN, "memory": MEMORY, "shared": Pinning()}


@pytest.mark.parametrize(
    ("standing", "container", "pool", "wanted"),
    [
        pytest.param(Standing.ADMITTED, "own", POOL, OWN, id="exclusive"),
        pytest.param(Standing.ESTIMATED, "own", POOL, OWN, id="estimated"),
        pytest.param(
            Standing.ADMITTED, "memory", POOL, Pinning(POOL, MEMORY.mems), id="shared-with-memory"
        ),
        pytest.param(Standing.ADMITTED, "shared", POOL, Pinning(POOL), id="shared"),
        pytest.param(Standing.ADMITTED, "unheard", POOL, Pinning(POOL), id="unknown-container"),
        pytest.param(Standing.WAITING, "own", POOL, Pinning(POOL), id="waiting"),
        pytest.param(Standing.SHARED, "own", POOL, Pinning(POOL), id="refused-and-running"),
        pytest.param(Standing.REFUSED, "own", POOL, Pinning(POOL), id="refused"),
        pytest.param(Standing.FOREIGN, "own", POOL, None, id="somebody-elses"),
        pytest.param(Standing.ADMITTED, "own", None, OWN, id="exclusive-without-a-pool"),
        pytest.param(Standing.ADMITTED, "memory", None, MEMORY, id="memory-without-a-pool"),
        pytest.param(Standing.WAITING, "own", None, None, id="pool-not-known"),
        pytest.param(Standing.WAITING, "own", NO_CPUS, None, id="pool-is-empty"),
    ],
)
def test_pinning(
    standing: Standing, container: str, pool: CpuSet | None, wanted: Pinning | None
) -> None:
    assert pinning_of(standing, container, GRANTS, pool) == wanted


@pytest.mark.parametrize(
    ("told", "pool"),
    [
        pytest.param(CpuSet.parse("0-5"), POOL, id="told-before-the-grant"),
        pytest.param(POOL, POOL, id="told-after"),
        pytest.param(None, None, id="not-told"),
    ],
)
def test_what_was_given_away_is_not_shared(told: CpuSet | None, pool: CpuSet | None) -> None:
    assert shared_pool(told, GRANTS.values()) == pool
