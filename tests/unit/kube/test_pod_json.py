from __future__ import annotations

from typing import Any

import pytest

from numalign.errors import InvalidInput
from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_json import pod_from_json, pod_to_json

_WHOLE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "uid": "u",
        "creationTimestamp": "2024-01-02T03:04:05Z",
        "deletionGracePeriodSeconds": 0,
        "labels": {"a": "b"},
        "ownerReferences": [{"kind": "Job", "name": "j", "controller": False}],
    },
    "spec": {
        "volumes": [{"name": "v"}],
        "containers": [
            {
                "name": "c",
                "command": ["run", ""],
                "ports": [{"hostPort": 80, "hostIP": "::1"}],
                "resources": {"limits": {"cpu": "2"}, "claims": [{"name": "r"}]},
                "securityContext": {"appArmorProfile": {"localhostProfile": ""}},
            }
        ],
        "hostPID": True,
        "hostIPC": True,
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "k", "operator": "In", "values": ["x"]}]}
                    ]
                }
            }
        },
        "priority": 0,
        "overhead": {"cpu": "10m"},
        "ephemeralContainers": [{"name": "e", "image": "i", "targetContainerName": "c"}],
        "resources": {},
    },
    "status": {
        "qosClass": "Burstable",
        "containerStatuses": [{"name": "c", "imageID": "x", "containerID": "y"}],
    },
}  # fmt: skip


def _violations(obj: dict[str, Any], **more: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as caught:
        pod_from_json(obj, **more)
    return [(violation.field, violation.description) for violation in caught.value.violations]


def test_a_whole_pod_there_and_back() -> None:
    message = pod_from_json(_WHOLE)

    assert pod_to_json(message) == _WHOLE
    assert message.spec.host_pid
    assert message.spec.HasField("resources")
    assert message.spec.HasField("priority")
    assert message.metadata.creation_timestamp.seconds == 1704164645
    assert message.spec.ephemeral_containers[0].ephemeral_container_common.name == "e"


def test_null_counts_as_absent() -> None:
    obj = {
        "metadata": {"creationTimestamp": None, "labels": None},
        "spec": {"containers": None, "resources": None, "priority": None},
        "status": None,
    }

    assert pod_to_json(pod_from_json(obj)) == {
        "apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {},
    }  # fmt: skip


def test_the_zero_time_of_a_go_client_is_no_time() -> None:
    message = core_pb2.Pod()
    message.metadata.creation_timestamp.SetInParent()

    assert pod_to_json(message)["metadata"] == {}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("500m", "500m", id="text"),
        pytest.param(" 1 ", "1", id="blanks"),
        pytest.param(2, "2", id="integer"),
        pytest.param(1.5, "1.5", id="fraction"),
        pytest.param(1.0, "1", id="whole-float"),
        pytest.param(1e30, "1e+30", id="large-float"),
    ],
)
def test_quantities(value: object, text: str) -> None:
    message = pod_from_json({"spec": {"overhead": {"cpu": value}}})

    assert message.spec.overhead["cpu"].string == text


def test_unknown_keys_are_reported() -> None:
    ignored: list[str] = []
    message = pod_from_json(
        {
            "spec": {
                "hostNetwork": True,
                "hostname": "x",
                "containers": [{"name": "c", "livenessProbe": {}}],
                "ephemeralContainers": [{"name": "e", "ephemeralContainerCommon": {}, "tty": True}],
            },
            "extra": 1,
        },
        ignored=ignored,
        path="documents[0]",
    )

    assert ignored == [
        "documents[0].spec.hostname",
        "documents[0].spec.containers[0].livenessProbe",
        "documents[0].spec.ephemeralContainers[0].ephemeralContainerCommon",
        "documents[0].spec.ephemeralContainers[0].tty",
        "documents[0].extra",
    ]
    assert message.spec.host_network


@pytest.mark.parametrize(
    ("obj", "field", "description"),
    [
        pytest.param(
            {"kind": "Node"}, "kind",
            'Unsupported value: "Node": supported values: "Pod"', id="kind"),
        pytest.param(
            {"apiVersion": ["v1"]}, "apiVersion",
            'Unsupported value: "[\'v1\']": supported values: "v1"', id="version-as-list"),
        pytest.param(
            {"apiVersion": "v2"}, "apiVersion",
            'Unsupported value: "v2": supported values: "v1"', id="version"),
        pytest.param(
            {"metadata": {"name": 5}}, "metadata.name",
            'Invalid value: "5": must be text', id="text"),
        pytest.param(
            {"metadata": {"name": "\ud800"}}, "metadata.name",
            r'Invalid value: "\ud800": must be text', id="half-a-character"),
        pytest.param(
            {"metadata": {"labels": {"a": True}}}, "metadata.labels[a]",
            'Invalid value: "true": must be text', id="label"),
        pytest.param(
            {"metadata": {"labels": {1: "a"}}}, "metadata.labels",
            'Invalid value: "1": keys must be text', id="label-key"),
        pytest.param(
            {"metadata": {"labels": []}}, "metadata.labels",
            'Invalid value: "[]": must be an object', id="map"),
        pytest.param(
            {"metadata": {"creationTimestamp": "yesterday"}}, "metadata.creationTimestamp",
            'Invalid value: "yesterday": must be a time such as 2006-01-02T15:04:05Z', id="time"),
        pytest.param(
            {"spec": {"hostNetwork": "yes"}}, "spec.hostNetwork",
            'Invalid value: "yes": must be true or false', id="boolean"),
        pytest.param(
            {"spec": {"priority": True}}, "spec.priority",
            'Invalid value: "true": must be an integer', id="boolean-as-integer"),
        pytest.param(
            {"spec": {"priority": 2**31}}, "spec.priority",
            'Invalid value: "2147483648": must be between -2147483648 and 2147483647',
            id="range"),
        pytest.param(
            {"spec": {"containers": {}}}, "spec.containers",
            'Invalid value: "{}": must be a list', id="list"),
        pytest.param(
            {"spec": {"containers": ["c"]}}, "spec.containers[0]",
            'Invalid value: "c": must be an object', id="object"),
        pytest.param(
            {"spec": {"containers": [{"args": [1]}]}}, "spec.containers[0].args[0]",
            'Invalid value: "1": must be text', id="text-in-list"),
        pytest.param(
            {"spec": {"overhead": {"cpu": "1 Gi"}}}, "spec.overhead[cpu]",
            'Invalid value: "1 Gi": quantities must match the regular expression '
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'", id="quantity"),
        pytest.param(
            {"spec": {"overhead": {"cpu": False}}}, "spec.overhead[cpu]",
            'Invalid value: "false": must be a quantity, as text or a number',
            id="boolean-as-quantity"),
    ],
)  # fmt: skip
def test_one_fault(obj: dict[str, Any], field: str, description: str) -> None:
    assert _violations(obj) == [(field, description)]


def test_all_faults_are_named_at_once_with_the_outer_path() -> None:
    obj = {"metadata": {"name": 1, "uid": 2}, "spec": 3}

    assert [field for field, _ in _violations(obj, path="items[4]")] == [
        "items[4].metadata.name",
        "items[4].metadata.uid",
        "items[4].spec",
    ]


def test_long_values_are_cut_in_messages() -> None:
    ((_, description),) = _violations({"spec": "x" * 1000})

    assert len(description) < 120
