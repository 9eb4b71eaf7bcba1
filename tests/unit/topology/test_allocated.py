"""What a pod is allocated, in the record and over a pod that asks for something else."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_decode import decode_pod, parse_pod
from numalign.kube.pod_json import pod_from_json, pod_to_json
from numalign.model.feature_gates import FeatureGates
from numalign.topology.allocated import (
    as_allocated,
    changed_claims,
    holds_the_same,
    keep_what_was_not_asked,
    resources_to_message,
)
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

GATES = FeatureGates()
NO_INITS = FeatureGates(in_place_pod_vertical_scaling_init_containers=False)
NO_POD_LEVEL = FeatureGates(in_place_pod_level_resources_vertical_scaling=False)


def container(name: str, cpu: str | None = None, *, image: str = "", **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name, **more}
    if cpu is not None:
        made["resources"] = {"requests": {"cpu": cpu}}
    return made | ({"image": image} if image else {})


def pod(*containers: dict[str, Any], **spec: Any) -> bytes:
    document = {"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": containers, **spec}}
    return pod_from_json(document).SerializeToString()


def shown(data: bytes) -> Any:
    return pod_to_json(parse_pod(data))["spec"]


WITH_INITS = pod(
    container("c", "1"),
    initContainers=[container("i", "2"), container("s", "500m", restartPolicy="Always")],
    resources={"limits": {"memory": "1Gi"}},
)


@pytest.mark.parametrize(
    ("gates", "containers", "pod_level"),
    [
        pytest.param(GATES, {"i": "2", "s": "500m", "c": "1"}, {"memory": "1Gi"}, id="all"),
        pytest.param(NO_INITS, {"s": "500m", "c": "1"}, {"memory": "1Gi"}, id="no-inits"),
        pytest.param(NO_POD_LEVEL, {"i": "2", "s": "500m", "c": "1"}, {}, id="no-pod-level"),
    ],
)
def test_what_is_recorded(
    gates: FeatureGates, containers: dict[str, str], pod_level: dict[str, str]
) -> None:
    """ALLOC-5: whole sections of resizable containers, and of the pod."""
    message = resources_to_message(decode_pod(WITH_INITS), gates)

    assert {c.container: c.amounts.requests["cpu"] for c in message.containers} == containers
    assert dict(message.pod.limits) == pod_level
    assert message.HasField("pod") is bool(pod_level)


@pytest.mark.parametrize(
    ("sent", "recorded", "gates", "expected"),
    [
        pytest.param(
            pod(container("c", "4", image="b")),
            pod(container("c", "1", image="a")),
            GATES,
            pod(container("c", "1", image="b")),
            id="resources-only",
        ),
        pytest.param(
            pod(container("c", "4")), pod(container("c")), GATES, pod(container("c")), id="none"
        ),
        pytest.param(
            pod(container("c", "4"), container("d", "4")),
            pod(container("d", "1")),
            GATES,
            pod(container("c", "4"), container("d", "1")),
            id="by-name",
        ),
        pytest.param(
            pod(container("c"), initContainers=[container("i", "4")]),
            pod(container("c"), initContainers=[container("i", "1")]),
            NO_INITS,
            pod(container("c"), initContainers=[container("i", "4")]),
            id="init-container-without-an-entry",
        ),
        pytest.param(
            pod(container("c"), resources={"requests": {"cpu": "4"}}),
            pod(container("c")),
            GATES,
            pod(container("c")),
            id="pod-level-goes",
        ),
        pytest.param(
            pod(container("c")),
            pod(container("c"), resources={}),
            GATES,
            pod(container("c"), resources={}),
            id="pod-level-comes",
        ),
        pytest.param(
            pod(container("c"), resources={"requests": {"cpu": "4"}}),
            pod(container("c")),
            NO_POD_LEVEL,
            pod(container("c"), resources={"requests": {"cpu": "4"}}),
            id="pod-level-has-its-gate",
        ),
    ],
)
def test_a_pod_as_it_is_allocated(
    sent: bytes, recorded: bytes, gates: FeatureGates, expected: bytes
) -> None:
    """ALLOC-6."""
    assert shown(as_allocated(sent, recorded, gates)) == shown(expected)


def test_what_is_not_known_here_stays_in_the_pod() -> None:
    unknown = b"\xba\xb7\x02\x03abc"
    data = pod(container("c", "4")) + unknown

    assert unknown in as_allocated(data, pod(container("c", "1")), GATES)


@pytest.mark.parametrize(
    ("after", "field"),
    [
        pytest.param(pod(container("c", "4", image="a")), None, id="neither"),
        pytest.param(pod(container("c", image="b")), None, id="image"),
        pytest.param(
            pod(container("c", image="a", resources={"claims": [{"name": "x"}]})),
            "spec.containers[0].resources.claims",
            id="claims",
        ),
    ],
)
def test_claims_may_not_change(after: bytes, field: str | None) -> None:
    assert changed_claims(pod(container("c", "1", image="a")), after) == field


def device(resource: str, *ids: str, provider: str = "") -> pb.DeviceAllocation:
    return pb.DeviceAllocation(resource=resource, ids=ids, provider=provider)


def test_devices_of_a_provider_that_was_left_out_stay() -> None:
    """A resize takes nothing away that its provider was not asked about."""
    before = pb.AdmissionRecord(
        allocations=[
            pb.ContainerAllocation(
                container="c",
                devices=[device("a", "1"), device("b", "2", provider="third-party")],
                affinity=pb.Hint(mask=1),
            ),
            pb.ContainerAllocation(container="gone"),
        ]
    )
    allocations = [pb.ContainerAllocation(container="c", devices=[device("a", "3")])]

    before.allocations[0].claims.add(name="c1")
    before.allocations[0].claim_cdi_devices.append("d/x=1")
    keep_what_was_not_asked(allocations, before, {"third-party"})

    (kept,) = allocations
    assert [(d.resource, list(d.ids)) for d in kept.devices] == [("a", ["3"]), ("b", ["2"])]
    assert kept.affinity.mask == 1
    assert [claim.name for claim in kept.claims] == ["c1"]
    assert list(kept.claim_cdi_devices) == ["d/x=1"]


@pytest.mark.parametrize(
    ("after", "same"),
    [
        pytest.param(pb.ContainerAllocation(container="c", cpus="1-2"), True, id="equal"),
        pytest.param(
            pb.ContainerAllocation(container="c", cpus="1-2", affinity=pb.Hint(preferred=True)),
            True,
            id="another-affinity",
        ),
        pytest.param(pb.ContainerAllocation(container="c", cpus="1-3"), False, id="other-cpus"),
        pytest.param(pb.ContainerAllocation(container="c"), False, id="nothing"),
    ],
)
def test_holding_the_same(after: pb.ContainerAllocation, same: bool) -> None:
    before = pb.AdmissionRecord(
        allocations=[pb.ContainerAllocation(container="c", cpus="1-2")],
    )

    assert holds_the_same(before, ad.AdmitResponse(allocations=[after])) is same


def test_a_container_that_holds_nothing_need_not_be_listed() -> None:
    before = pb.AdmissionRecord(allocations=[pb.ContainerAllocation(container="c")])

    assert holds_the_same(before, ad.AdmitResponse())


def test_bytes_that_are_no_pod() -> None:
    with pytest.raises(Exception, match=r"the bytes are not those of a v1\.Pod"):
        as_allocated(b"\xff", core_pb2.Pod().SerializeToString(), GATES)
