"""Messages as the values that a program reads."""

from __future__ import annotations

import pytest

from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb
from numalign_client.answers import admissions, decision, preparation
from numalign_client.errors import AdmissionError
from numalign_client.objects import GivenPod
from numalign_client.results import (
    AdmittedPod,
    Affinity,
    Amounts,
    ContainerAllocation,
    ContainerEdits,
    Decision,
    DeviceAllocation,
    DeviceNode,
    MemoryBlock,
    Mount,
    PodAllocation,
    PodResources,
    UnhealthyDevice,
    Verdict,
    Victim,
    cpu_ids,
)

_POD = GivenPod(b"", "u1", uid_invented=True)
_EDITS = pb.ContainerEdits(
    envs={"A": "1"},
    mounts=[pb.Mount(container_path="/a", host_path="/b", read_only=True)],
    device_nodes=[pb.DeviceNode(container_path="/dev/a", host_path="/dev/b", permissions="rw")],
    annotations={"k": "v"},
    cdi_devices=["vendor.com/x=a"],
)
_EDITS_READ = ContainerEdits(
    envs={"A": "1"},
    mounts=(Mount("/a", "/b", True),),
    device_nodes=(DeviceNode("/dev/a", "/dev/b", "rw"),),
    annotations={"k": "v"},
    cdi_devices=("vendor.com/x=a",),
)
_ALLOCATION = pb.ContainerAllocation(
    container="c",
    cpus="2-3,6",
    memory=[pb.MemoryBlock(numa_nodes=[0, 1], resource="memory", size=5)],
    devices=[
        pb.DeviceAllocation(
            resource="example.com/gpu",
            ids=["g0"],
            by_numa_node=[pb.NumaDevices(numa_node=-1, ids=["g0"])],
            edits=_EDITS,
        )
    ],
    affinity=pb.Hint(mask=0b101, preferred=True),
)
_ALLOCATION_READ = ContainerAllocation(
    container="c",
    cpus="2-3,6",
    memory=(MemoryBlock((0, 1), "memory", 5),),
    devices=(
        DeviceAllocation(
            resource="example.com/gpu",
            ids=("g0",),
            by_numa_node={-1: ("g0",)},
            edits=_EDITS_READ,
        ),
    ),
    affinity=Affinity((0, 2), True),
)
_RESOURCES = pb.PodResources(
    containers=[
        pb.ContainerResources(
            container="c",
            amounts=pb.ResourceAmounts(requests={"cpu": "1"}, limits={"cpu": "2"}),
        )
    ],
    pod=pb.ResourceAmounts(),
)
_RESOURCES_READ = PodResources(
    containers={"c": Amounts(requests={"cpu": "1"}, limits={"cpu": "2"})}, pod=Amounts()
)


def test_an_admission_in_full() -> None:
    message = ad.AdmitResponse(
        verdict=pb.VERDICT_ADMITTED,
        allocations=[_ALLOCATION],
        pod_allocation=pb.PodAllocation(cpus="1"),
        resources=_RESOURCES,
        warnings=["w"],
        already_admitted=True,
        resize_pending=True,
        revision=3,
        explanation=pb.Explanation(summary="s"),
    )
    read = decision(message, _POD, "more")

    assert read == Decision(
        verdict=Verdict.ADMITTED,
        pod_uid="u1",
        uid_invented=True,
        allocations=(_ALLOCATION_READ,),
        pod_allocation=PodAllocation(cpus="1"),
        resources=_RESOURCES_READ,
        warnings=("w", "more"),
        already_admitted=True,
        resize_pending=True,
        revision=3,
        explanation=pb.Explanation(summary="s"),
    )
    assert (read.admitted, read.summary, str(read)) == (True, "s", "admitted")
    assert read.allocations[0].cpu_ids == {2, 3, 6}


def test_a_deferral_in_full() -> None:
    message = ad.AdmitResponse(
        verdict=pb.VERDICT_DEFERRED,
        handler="predicates",
        reason="Preempting",
        message="wait",
        handler_reason="OutOfcpu",
        victims=[pb.Victim(pod_uid="v", namespace="n", name="p")],
    )
    message.retry_after.FromMilliseconds(1500)
    read = decision(message, _POD)

    assert (read.verdict, read.retry_after, read.handler_reason) == (
        Verdict.DEFERRED,
        1.5,
        "OutOfcpu",
    )
    assert read.victims == (Victim("v", "n", "p"),)
    assert str(read) == "deferred (Preempting: wait)"


def test_a_verdict_prints_as_a_word() -> None:
    message = ad.AdmitResponse(verdict=pb.VERDICT_REJECTED, reason="NodePorts")
    read = decision(message, _POD)

    assert f"{read.verdict}" == "rejected"
    assert str(read) == "rejected (NodePorts)"
    assert not read.admitted


def test_a_verdict_that_is_none() -> None:
    with pytest.raises(AdmissionError, match="does not know: 0"):
        decision(ad.AdmitResponse(), _POD)


def test_an_affinity_to_no_node_in_particular() -> None:
    message = ad.AdmitResponse(
        verdict=pb.VERDICT_ADMITTED,
        allocations=[
            pb.ContainerAllocation(container="a", affinity=pb.Hint(preferred=True)),
            pb.ContainerAllocation(container="b"),
        ],
    )
    first, second = decision(message, _POD).allocations

    assert (first.affinity, second.affinity) == (Affinity(None, True), None)
    assert first.cpu_ids == frozenset()


def test_a_preparation() -> None:
    read = preparation(
        ad.PrepareContainerResponse(
            cpus="2-3,6", exclusive_cpus=True, mems="0", edits=_EDITS, allocation=_ALLOCATION
        )
    )

    assert (read.cpus, read.exclusive_cpus, read.mems) == ("2-3,6", True, "0")
    assert (read.edits, read.allocation) == (_EDITS_READ, _ALLOCATION_READ)


def test_the_admitted_pods() -> None:
    record = pb.AdmissionRecord(
        pod_uid="u",
        namespace="n",
        name="p",
        owner="o",
        revision=4,
        qos_class="Guaranteed",
        allocations=[_ALLOCATION],
        resources=_RESOURCES,
        containers=[pb.AdmittedContainer(name="c")],
        config_generation=2,
        problems=["lost a CPU"],
    )
    unhealthy = {"pod_uid": "u", "container": "c", "resource": "r", "id": "g0", "health": "Unknown"}
    read = admissions(
        ad.ListAdmissionsResponse(
            admissions=[record],
            revision=9,
            shared_cpus="0",
            unhealthy_devices=[pb.UnhealthyDevice(**unhealthy)],
        )
    )

    assert (read.revision, read.shared_cpus) == (9, "0")
    assert read.unhealthy_devices == (UnhealthyDevice(**unhealthy),)
    assert read.pods == (
        AdmittedPod(
            pod_uid="u",
            namespace="n",
            name="p",
            owner="o",
            revision=4,
            qos_class="Guaranteed",
            allocations=(_ALLOCATION_READ,),
            pod_allocation=None,
            resources=_RESOURCES_READ,
            containers=("c",),
            config_generation=2,
            problems=("lost a CPU",),
        ),
    )


@pytest.mark.parametrize(
    ("text", "ids"), [("", ()), ("3", (3,)), ("0-2", (0, 1, 2)), ("8,0-1", (0, 1, 8))]
)
def test_cpu_lists(text: str, ids: tuple[int, ...]) -> None:
    assert cpu_ids(text) == set(ids)
