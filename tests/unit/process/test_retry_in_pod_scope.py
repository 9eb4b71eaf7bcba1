"""Where a Topology Manager decides on a refused pod as a whole, as it is put together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.process.observed_world import settings
from tests.unit.process.reloading_world import running

from numalign.config.settings import Compatibility
from numalign.model.machine import Machine, NumaNode
from numalign.model.settings import Placement
from numalign.process.topology_changes import deciding_parts
from numalign.topology.construct import build_policy

MACHINE = Machine(numa_nodes=(NumaNode(id=0), NumaNode(id=1)))


@pytest.mark.parametrize(
    ("on", "policy", "scope", "compatibility", "expected"),
    [
        pytest.param(True, "restricted", "container", Compatibility.SAFE, True, id="on"),
        pytest.param(False, "restricted", "container", Compatibility.SAFE, False, id="off"),
        pytest.param(True, "restricted", "pod", Compatibility.SAFE, False, id="scope-pod"),
        pytest.param(True, "none", "container", Compatibility.SAFE, False, id="policy-none"),
        pytest.param(
            True, "restricted", "container", Compatibility.KUBELET, False, id="as-a-kubelet"
        ),
    ],
)
def test_where(
    on: bool,
    policy: str,
    scope: str,
    compatibility: Compatibility,
    expected: bool,
    tmp_path: Path,
) -> None:
    given = settings(tmp_path)
    given = replace(
        given,
        topology=replace(given.topology, policy=policy, scope=scope),
        compatibility=compatibility,
        placement=Placement(retry_in_pod_scope=on),
    )
    decider = build_policy(given.topology, MACHINE, given.gates, placement=given.placement)

    retry = deciding_parts(decider, given, 1).retry

    assert (retry is not None) is expected
    if retry is not None:
        assert (retry.scope.name, retry.instead_of) == ("pod", "container")


async def test_it_is_taken_over_while_the_node_runs(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        answer = await world.reload(numalign={"placement": {"retryInPodScope": True}})

    assert list(answer.applied) == ["numalign.placement"]
    assert list(answer.needs_restart) == []
