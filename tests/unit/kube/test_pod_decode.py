from __future__ import annotations

from typing import Any

import pytest

from numalign.errors import InvalidInput
from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_decode import MAX_POD_BYTES, decode_pod, pod_from_message, read_pod
from numalign.model.pod import Resources
from numalign.model.quantity import Quantity


def _container(name: str = "c", **sections: dict[str, str]) -> core_pb2.Container:
    return core_pb2.Container(name=name, resources=_resources(**sections))


def _resources(**sections: dict[str, str]) -> core_pb2.ResourceRequirements:
    amounts: dict[str, Any] = {
        section: {name: core_pb2.Quantity(string=text) for name, text in texts.items()}
        for section, texts in sections.items()
    }
    return core_pb2.ResourceRequirements(**amounts)


def _pod(*containers: core_pb2.Container, uid: str = "u", **spec: Any) -> core_pb2.Pod:
    return core_pb2.Pod(
        metadata=core_pb2.ObjectMeta(uid=uid, name="p", namespace="n"),
        spec=core_pb2.PodSpec(containers=containers, **spec),
    )


def _violations(message: core_pb2.Pod) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as caught:
        pod_from_message(message)
    return [(violation.field, violation.description) for violation in caught.value.violations]


def test_a_whole_pod() -> None:
    sidecar = _container("side", requests={"cpu": "100m"})
    sidecar.restart_policy = "Always"
    message = _pod(
        _container("app", requests={"memory": "1Gi", "cpu": "2"}, limits={"cpu": "2"}),
        init_containers=[_container("init"), sidecar],
        overhead={"cpu": core_pb2.Quantity(string="250m")},
        resources=_resources(),
    )
    message.status.qos_class = "Guaranteed"
    message.status.extended_resource_claim_status.request_mappings.add(
        container_name="app", resource_name="example.com/gpu", request_name="r"
    )

    pod = decode_pod(message.SerializeToString())

    assert pod == pod_from_message(message)
    assert (pod.uid, pod.name, pod.namespace) == ("u", "p", "n")
    assert [c.name for c in pod.all_containers()] == ["init", "side", "app"]
    assert [c.is_init for c in pod.all_containers()] == [True, True, False]
    assert [c.restartable for c in pod.all_containers()] == [False, True, False]
    assert pod.containers[0].resources == Resources(
        requests={"cpu": Quantity.parse("2"), "memory": Quantity.parse("1Gi")},
        limits={"cpu": Quantity.parse("2")},
    )
    assert list(pod.containers[0].resources.requests) == ["cpu", "memory"]
    assert pod.resources == Resources()
    assert pod.overhead == {"cpu": Quantity.parse("250m")}
    assert pod.status_qos_class == "Guaranteed"
    assert pod.claimed_resources == frozenset({("app", "example.com/gpu")})


def test_no_pod_level_section_is_none() -> None:
    assert pod_from_message(_pod(_container())).resources is None


def test_an_app_container_that_always_restarts_is_no_sidecar() -> None:
    app = _container()
    app.restart_policy = "Always"

    assert not pod_from_message(_pod(app)).containers[0].restartable


@pytest.mark.parametrize(
    ("message", "field", "description"),
    [
        pytest.param(_pod(_container(), uid=""), "metadata.uid", "Required value", id="uid"),
        pytest.param(_pod(), "spec.containers", "Required value", id="no-containers"),
        pytest.param(
            _pod(_container("")), "spec.containers[0].name", "Required value", id="no-name"
        ),
        pytest.param(
            _pod(_container("a"), _container("a")),
            "spec.containers[1].name", 'Duplicate value: "a"', id="same-name",
        ),
        pytest.param(
            _pod(_container("a"), init_containers=[_container("a")]),
            "spec.initContainers[0].name", 'Duplicate value: "a"', id="same-name-as-init",
        ),
        pytest.param(
            _pod(_container(limits={"cpu": "1Q"})),
            "spec.containers[0].resources.limits[cpu]",
            'Invalid value: "1Q": quantities must match the regular expression '
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'", id="unparsable",
        ),
        pytest.param(
            _pod(_container(requests={"cpu": "-1000m"})),
            "spec.containers[0].resources.requests[cpu]",
            'Invalid value: "-1": must be greater than or equal to 0', id="negative",
        ),
        pytest.param(
            _pod(_container(), init_containers=[_container("i", limits={"e.com/x": "1.5"})]),
            "spec.initContainers[0].resources.limits[e.com/x]",
            'Invalid value: "1500m": must be an integer', id="half-a-device",
        ),
        pytest.param(
            _pod(_container(limits={"hugepages-2Mi": "0.5"})),
            "spec.containers[0].resources.limits[hugepages-2Mi]",
            'Invalid value: "500m": must be an integer', id="half-a-byte",
        ),
        pytest.param(
            _pod(_container(requests={"cpu": "2"}, limits={"cpu": "1500m"})),
            "spec.containers[0].resources.requests",
            'Invalid value: "2": must be less than or equal to cpu limit of 1500m',
            id="above-limit",
        ),
        pytest.param(
            _pod(_container(requests={"e.com/x": "1"}, limits={"e.com/x": "2"})),
            "spec.containers[0].resources.requests",
            'Invalid value: "1": must be equal to e.com/x limit of 2', id="device-below-limit",
        ),
        pytest.param(
            _pod(_container(requests={"hugepages-2Mi": "2Mi"}, limits={"hugepages-2Mi": "4Mi"})),
            "spec.containers[0].resources.requests",
            'Invalid value: "2Mi": must be equal to hugepages-2Mi limit of 4Mi',
            id="huge-pages-below-limit",
        ),
        pytest.param(
            _pod(_container(requests={"e.com/x": "1"})),
            "spec.containers[0].resources.limits",
            "Required value: Limit must be set for non overcommitable resources",
            id="device-without-limit",
        ),
        pytest.param(
            _pod(_container(requests={"hugepages-2Mi": "2Mi"}, limits={"cpu": "1"})),
            "spec.containers[0].resources.limits",
            "Required value: Limit must be set for non overcommitable resources",
            id="huge-pages-without-limit",
        ),
        pytest.param(
            _pod(_container(), resources=_resources(limits={"cpu": "x"})),
            "spec.resources.limits[cpu]",
            'Invalid value: "x": quantities must match the regular expression '
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'", id="pod-level",
        ),
        pytest.param(
            _pod(_container(), overhead={"cpu": core_pb2.Quantity(string="-1")}),
            "spec.overhead[cpu]",
            'Invalid value: "-1": must be greater than or equal to 0', id="overhead",
        ),
        pytest.param(
            _pod(_container(), init_containers=[
                core_pb2.Container(name="i", restart_policy="Sometimes")]),
            "spec.initContainers[0].restartPolicy",
            'Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure"',
            id="restart-policy",
        ),
    ],
)  # fmt: skip
def test_one_fault(message: core_pb2.Pod, field: str, description: str) -> None:
    assert _violations(message) == [(field, description)]


def test_all_faults_are_named_at_once() -> None:
    message = _pod(
        _container("", limits={"cpu": "x", "memory": "-1"}),
        _container("a", requests={"cpu": "2"}, limits={"cpu": "1"}),
        uid="",
        init_containers=[_container("a")],
    )

    assert [field for field, _ in _violations(message)] == [
        "metadata.uid",
        "spec.containers[0].name",
        "spec.containers[0].resources.limits[cpu]",
        "spec.containers[0].resources.limits[memory]",
        "spec.containers[1].resources.requests",
        "spec.initContainers[0].name",
    ]


def test_what_can_be_read_is_read() -> None:
    pod, violations = read_pod(_pod(_container(limits={"cpu": "x", "memory": "1Gi"})))

    assert len(violations) == 1
    assert list(pod.containers[0].resources.limits) == ["memory"]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\xff\xff\xff", id="noise"),
        pytest.param(b"\x0a\x05ab", id="cut-off"),
        pytest.param(b"\x0a\x03\x0a\x01\xff", id="no-utf-8"),
    ],
)
def test_bytes_that_are_no_pod(data: bytes) -> None:
    with pytest.raises(InvalidInput, match=r"^pod: Invalid value: the bytes are not those of"):
        decode_pod(data)


def test_a_pod_that_is_too_large() -> None:
    message = _pod(_container())
    message.metadata.annotations["a"] = "x" * MAX_POD_BYTES
    text = r"^pod: Too long: may not be more than 1048576 bytes$"

    with pytest.raises(InvalidInput, match=text):
        decode_pod(message.SerializeToString())
    with pytest.raises(InvalidInput, match=text):
        pod_from_message(message)
