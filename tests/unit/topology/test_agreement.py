"""Whether a record and the books of one provider say the same, and how the record follows."""

from __future__ import annotations

import pytest

from numalign.topology.agreement import agrees, followed, holding_now
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb


def device(name: str, provider: str = "") -> pb.DeviceAllocation:
    return pb.DeviceAllocation(resource=f"example.com/{name}", ids=[name], provider=provider)


RECORD = pb.AdmissionRecord(
    pod_uid="p",
    allocations=[
        pb.ContainerAllocation(
            container="c",
            cpus="1-2",
            memory=[pb.MemoryBlock(numa_nodes=[0], resource="memory", size=1)],
            devices=[device("gpu"), device("licence", "licences"), device("way", "ways")],
            affinity=pb.Hint(mask=1),
        )
    ],
)


def holding(*devices: pb.DeviceAllocation, cpus: str = "") -> hp.PodHolding:
    held = pb.ContainerAllocation(container="c", devices=devices, cpus=cpus)
    return hp.PodHolding(pod_uid="p", allocations=[held])


@pytest.mark.parametrize(
    ("provider", "held", "same"),
    [
        pytest.param("cpu", holding(cpus="1-2"), True, id="cpu"),
        pytest.param("cpu", holding(cpus="1"), False, id="other-cpus"),
        pytest.param("device", holding(device("gpu")), True, id="device"),
        pytest.param("device", holding(), False, id="device-lost"),
        pytest.param("licences", holding(device("licence", "licences")), True, id="third-party"),
        pytest.param("licences", hp.PodHolding(), False, id="third-party-lost"),
        pytest.param("unheard-of", hp.PodHolding(), True, id="one-that-gave-nothing"),
    ],
)
def test_each_provider_is_held_to_its_own_part(
    provider: str, held: hp.PodHolding, same: bool
) -> None:
    assert agrees(provider, RECORD, held, frozenset()) is same


def test_the_record_loses_what_one_of_them_lost() -> None:
    changed = followed("licences", RECORD, hp.PodHolding(), (), frozenset())

    assert [d.resource for d in changed.allocations[0].devices] == [
        "example.com/gpu",
        "example.com/way",
    ]
    assert changed.allocations[0].cpus == "1-2"
    assert list(changed.problems) == [
        "licences: container c: example.com/licence licence not held any more"
    ]


def test_what_was_given_back_on_purpose_is_no_problem() -> None:
    held = [pb.ContainerAllocation(container="c", devices=[device("other")])]
    changed = holding_now("device", RECORD, held, ["c"])

    assert [d.resource for d in changed.allocations[0].devices] == [
        "example.com/other",
        "example.com/licence",
        "example.com/way",
    ]
    assert list(changed.problems) == []
    assert holding_now("device", RECORD, held, []) == RECORD
    assert holding_now("cpu", RECORD, [], ["c"]).allocations[0].cpus == ""
