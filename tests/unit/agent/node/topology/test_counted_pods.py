"""Which pods the fingerprint is of."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.v1 import types_pb2 as pb
from numalign_agent.cli.run_command import OWNER
from numalign_agent.node.settings import NO_PODS_OF_A_CLUSTER, Counted, Fingerprint
from numalign_agent.node.topology.counted_pods import counted

GPU, LICENCE = "example.com/gpu", "example.com/licence"
APP, INIT, SIDECAR = (
    pb.CONTAINER_KIND_APP,
    pb.CONTAINER_KIND_INIT,
    pb.CONTAINER_KIND_SIDECAR,
)


def record(
    qos: str = "Guaranteed",
    requests: dict[str, str] | None = None,
    *,
    kind: pb.ContainerKind.ValueType = APP,
    devices: str = "",
    **resources: Any,
) -> pb.AdmissionRecord:
    """A pod with a container `c` of this kind, and `last`, which asks for nothing."""
    amounts = pb.ResourceAmounts(requests=requests or {})
    made = pb.AdmissionRecord(
        namespace="default",
        name="p",
        qos_class=qos,
        containers=[
            pb.AdmittedContainer(name="c", kind=kind),
            pb.AdmittedContainer(name="last", kind=APP),
        ],
        resources=pb.PodResources(
            containers=[pb.ContainerResources(container="c", amounts=amounts)], **resources
        ),
    )
    if devices:
        given = pb.DeviceAllocation(resource=devices, ids=["d0"])
        made.allocations.add(container="c", devices=[given])
    return made


@pytest.mark.parametrize(
    ("given", "counts"),
    [
        pytest.param(record(requests={"cpu": "2", "memory": "1Gi"}), True, id="whole-cpus"),
        pytest.param(record(requests={"cpu": "1500m", "memory": "1Gi"}), True, id="memory"),
        pytest.param(record(requests={"cpu": "1500m", "memory": "0"}), False, id="a-part-of-a-cpu"),
        pytest.param(record(requests={"hugepages-2Mi": "4Mi"}), True, id="huge-pages"),
        pytest.param(record(), False, id="asks-for-nothing"),
        pytest.param(record("Burstable", {"cpu": "2", "memory": "1Gi"}), False, id="burstable"),
        pytest.param(record("Burstable", devices=GPU), True, id="device-of-a-zone"),
        pytest.param(record("BestEffort", devices=LICENCE), False, id="device-of-no-zone"),
        pytest.param(record(requests={"cpu": "2"}, kind=SIDECAR), True, id="sidecar"),
        pytest.param(record(requests={"cpu": "2"}, kind=INIT), False, id="init-container"),
        pytest.param(record("Burstable", devices=GPU, kind=INIT), False, id="device-of-init"),
    ],
)
def test_pods_with_exclusive_resources(given: pb.AdmissionRecord, counts: bool) -> None:
    found = list(counted([given], Counted(), {"cpu", "memory", GPU}))

    assert found == ([("default", "p")] if counts else [])


def test_all_pods() -> None:
    every = Counted(method=Fingerprint.ALL)

    assert list(counted([record("BestEffort")], every, ())) == [("default", "p")]


@pytest.mark.parametrize(
    ("owners", "counts"),
    [
        pytest.param(None, ["default", "agent"], id="all-but-commands"),
        pytest.param(frozenset({"agent", "run"}), ["agent", "run"], id="these"),
    ],
)
def test_what_is_no_pod_of_the_cluster_does_not_count(
    owners: frozenset[str] | None, counts: list[str]
) -> None:
    admissions = [
        pb.AdmissionRecord(owner=owner, name=owner, namespace="n")
        for owner in ("default", "agent", "run")
    ]
    found = counted(admissions, Counted(method=Fingerprint.ALL, owners=owners), ())

    assert [name for _, name in found] == counts


def test_the_owner_of_commands_is_that_of_numalign_run() -> None:
    assert OWNER == NO_PODS_OF_A_CLUSTER
