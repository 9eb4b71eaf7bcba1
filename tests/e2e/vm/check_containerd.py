"""Real containers on a real kernel with four NUMA nodes: `make e2e-vm`, by hand, five minutes.

Not collected by `make e2e`: emulated, a container runtime takes too long for every change.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.containerd import programs
from tests.e2e.vm.machine import run_inside

from numalign.model.cpu_set import CpuSet

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

_SECONDS = 800.0


def test_containers_are_where_admission_said() -> None:
    programs()
    seen = run_inside(Path(__file__).with_name("inside_containerd.py"), _SECONDS)
    assert "failed" not in seen, f"{seen['failed']}\n{seen['told']}"
    own = {name: CpuSet.parse(seen[name]["granted"]) for name in ("first", "second")}
    for name, cpus in own.items():
        (node,) = {cpu // 4 for cpu in cpus}
        assert len(cpus) == 3
        assert seen[name]["allowed"] == [str(cpus), str(node)]
    assert not own["first"].bits & own["second"].bits
    shared = CpuSet.parse(seen["shared"]["allowed"][0])
    assert shared.bits == (1 << 16) - 1 - own["first"].bits - own["second"].bits
