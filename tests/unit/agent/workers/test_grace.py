"""WRK-6, WRK-13 and traps 29 and 30."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.agent.made import pod

from numalign_agent.workers.grace import effective_grace, kill_wait


@pytest.mark.parametrize(
    ("in_force", "deletion", "override", "spec", "grace"),
    [
        pytest.param(None, None, None, None, 1, id="nothing is given"),
        pytest.param(None, None, None, 45, 45, id="the pod's own"),
        pytest.param(None, 30, 1, 45, 1, id="the least"),
        pytest.param(1, 30, None, 45, 1, id="it never grows"),
        pytest.param(30, None, 5, 45, 5, id="it shrinks"),
        pytest.param(None, None, 0, 45, 1, id="an override of 0 is a value"),
        pytest.param(None, 30, 0, 45, 30, id="0 does not outrank a larger one"),
        pytest.param(None, 0, None, 45, 1, id="deleted by force"),
        pytest.param(None, None, None, 0, 1, id="at least a second"),
    ],
)
def test_effective_grace(
    in_force: int | None, deletion: int | None, override: int | None, spec: int | None, grace: int
) -> None:
    metadata = {} if deletion is None else {"deletionGracePeriodSeconds": deletion}
    own: dict[str, Any] = {} if spec is None else {"terminationGracePeriodSeconds": spec}

    assert effective_grace(in_force, pod(metadata=metadata, **own), override) == grace


@pytest.mark.parametrize(
    ("spec", "override", "seconds"),
    [(30, None, 45), (5, None, 10), (None, None, 10), (30, 1, 10), (30, 21, 31)],
)
def test_kill_wait(spec: int | None, override: int | None, seconds: float) -> None:
    own: dict[str, Any] = {} if spec is None else {"terminationGracePeriodSeconds": spec}

    assert kill_wait(pod(**own), override) == seconds
