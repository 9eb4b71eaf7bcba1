"""Which pods the fingerprint is of."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.v1 import types_pb2 as pb
from numalign_agent.node.settings import Fingerprint
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
    found = list(counted([given], Fingerprint.EXCLUSIVE, {"cpu", "memory", GPU}))

    assert found == ([("default", "p")] if counts else [])


def test_all_pods() -> None:
    assert list(counted([record("BestEffort")], Fingerprint.ALL, ())) == [("default", "p")]
