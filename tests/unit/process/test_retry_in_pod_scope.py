"""Where a Topology Manager decides on a refused pod as a whole, as it is put together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.books import faults_of
from tests.unit.process.observed_world import settings
from tests.unit.process.reloading_world import PROVIDERS, running
from tests.unit.process.split_node import split_node

from numalign.config.settings import Compatibility, Service
from numalign.kube.pod_json import pod_from_json
from numalign.model.machine import Machine, NumaNode
from numalign.model.settings import Placement
from numalign.process.topology_changes import deciding_parts
from numalign.topology.construct import build_policy
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

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


def two_containers(uid: str, init: str, app: str) -> dict[str, object]:
    """A Guaranteed pod with an init container and one behind it."""

    def container(name: str, cpu: str) -> dict[str, object]:
        amounts = {"cpu": cpu, "memory": "1Mi"}
        return {"name": name, "resources": {"requests": amounts, "limits": amounts}}

    return {
        "metadata": {"uid": uid, "name": uid, "namespace": "default"},
        "spec": {
            "initContainers": [container("i", init)],
            "containers": [container("c", app)],
        },
    }


async def test_services_with_files_of_their_own_keep_it_over_a_restart(tmp_path: Path) -> None:
    given = settings(tmp_path, placement={"retryInPodScope": True})
    request = ad.AdmitRequest(pod=pod_from_json(two_containers("p", "1", "8")))
    too_much = ad.AdmitRequest(pod=pod_from_json(two_containers("q", "1", "9")))

    async with split_node(given) as node:
        admitted = await node.admission.Admit(request)
        refused = await node.admission.Admit(too_much)
    async with split_node(given) as node:
        again = await node.admission.Admit(request)
        listing = await node.admission.ListAdmissions(ad.ListAdmissionsRequest())
        faults = faults_of(listing, [await node.state(service) for service in PROVIDERS])
        await node.admission.Release(ad.ReleaseRequest(pod_uid="p"))
        empty = (await node.state(Service.CPU)).cpu.assignments

    assert admitted.verdict == pb.VERDICT_ADMITTED
    assert admitted.warnings
    assert refused.verdict == pb.VERDICT_REJECTED
    assert again.already_admitted
    assert again.allocations == admitted.allocations
    assert faults == []
    assert list(empty) == []
