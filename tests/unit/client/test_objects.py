"""Pods and Node objects in every form that they may be given in."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client as k8s

from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_json import pod_from_json
from numalign.kube.templates import pods_from_text
from numalign_client import InvalidRequest
from numalign_client.objects import PodLike, given_node, given_pod

_MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: app
    resources: {limits: {cpu: 2, memory: 1Gi}}
"""
_MAPPING: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "app", "resources": {"limits": {"cpu": 2, "memory": "1Gi"}}}]},
}
_OBJECT = k8s.V1Pod(
    api_version="v1",
    kind="Pod",
    metadata=k8s.V1ObjectMeta(name="web"),
    spec=k8s.V1PodSpec(
        containers=[
            k8s.V1Container(
                name="app",
                resources=k8s.V1ResourceRequirements(limits={"cpu": "2", "memory": "1Gi"}),
            )
        ]
    ),
)
_JSON = (
    '{"metadata": {"name": "web"}, "spec": {"containers": [{"name": "app", "resources":'
    ' {"limits": {"cpu": "2", "memory": "1Gi"}}}]}}'
)


def _file(directory: Path) -> PodLike:
    path = directory / "pod.yaml"
    path.write_text(_MANIFEST, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda _: _MAPPING, id="mapping"),
        pytest.param(lambda _: _MANIFEST, id="yaml"),
        pytest.param(lambda _: f"---\n{_MANIFEST}\n---\n", id="yaml with marks"),
        pytest.param(lambda _: _JSON, id="json"),
        pytest.param(lambda _: _OBJECT, id="kubernetes client"),
        pytest.param(_file, id="file"),
    ],
)
def test_a_manifest_is_the_pod_that_the_command_sees(
    tmp_path: Path, make: Callable[[Path], PodLike]
) -> None:
    given = given_pod(make(tmp_path))
    (same,) = pods_from_text(_MANIFEST).pods

    assert core_pb2.Pod.FromString(given.data) == same
    assert (given.uid, given.uid_invented) == (same.metadata.uid, True)


def test_a_message_and_bytes_stay_as_they_are() -> None:
    message = pod_from_json({"metadata": {"name": "a", "uid": "u"}, "spec": {}})
    data = message.SerializeToString() + b"\xf8\x07\x01"  # a field that nobody knows

    assert given_pod(message).data == message.SerializeToString()
    assert given_pod(data).data == data
    assert (given_pod(data).uid, given_pod(data).uid_invented) == ("u", False)


def test_bytes_without_a_uid_keep_all_they_have() -> None:
    message = pod_from_json({"metadata": {"name": "a", "labels": {"x": "y"}}})
    data = message.SerializeToString() + b"\xf8\x07\x01"
    given = given_pod(data)
    read = core_pb2.Pod.FromString(given.data)

    assert given.data.startswith(data)
    assert read.metadata.uid == given.uid
    assert dict(read.metadata.labels) == {"x": "y"}


def test_times_and_names_of_a_kubernetes_object() -> None:
    pod = k8s.V1Pod(
        metadata=k8s.V1ObjectMeta(
            name="web",
            uid="u",
            deletion_grace_period_seconds=5,
            creation_timestamp=datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC),
        ),
        status=k8s.V1PodStatus(start_time=datetime(2030, 1, 2, 3, 4, 6)),  # noqa: DTZ001
    )
    message = core_pb2.Pod.FromString(given_pod(pod).data)

    assert message == pod_from_json(
        {
            "metadata": {
                "name": "web",
                "namespace": "default",
                "uid": "u",
                "deletionGracePeriodSeconds": 5,
                "creationTimestamp": "2030-01-02T03:04:05Z",
            },
            "spec": {"restartPolicy": "Always"},
            "status": {"startTime": "2030-01-02T03:04:06Z"},
        }
    )


@pytest.mark.parametrize(
    ("pod", "problem"),
    [
        pytest.param("pod.yaml", "must be an object; a pod as text is its manifest", id="a name"),
        pytest.param("", "there must be one in a pod, not 0", id="nothing"),
        pytest.param(f"{_MANIFEST}\n---\n{_MANIFEST}", "one in a pod, not 2", id="two"),
        pytest.param("{", "document: cannot be decoded", id="half of JSON"),
        pytest.param("a: [", "cannot be decoded", id="half of YAML"),
        pytest.param({"kind": "Deployment"}, 'kind: Unsupported value: "Deployment"', id="kind"),
        pytest.param({"spec": {}}, "metadata.name: Required value", id="no name"),
        pytest.param({"spec": 3}, "spec: ", id="no spec"),
        pytest.param(b"\xff", "the bytes are not those of a v1.Pod", id="bytes"),
        pytest.param(b"k8s\x00\x0a", "the API server's bytes around a Pod", id="stored"),
    ],
)
def test_what_is_no_pod(pod: Any, problem: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        given_pod(pod)

    assert problem in str(refused.value)
    assert refused.value.violations


@pytest.mark.parametrize("pod", [None, 3, ["a"], object()])
def test_what_is_nothing_like_a_pod(pod: Any) -> None:
    with pytest.raises(TypeError, match="a pod must be a message, a mapping, an object of a"):
        given_pod(pod)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        given_pod(tmp_path / "no.yaml")


def test_yaml_where_it_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_yaml(name: str, *args: Any) -> Any:
        if name == "numalign.kube.manifest_text":
            raise ModuleNotFoundError("No module named 'yaml'", name="yaml")
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", without_yaml)

    with pytest.raises(ImportError, match=r"pip install 'numalign\[yaml\]'"):
        given_pod(_MANIFEST)
    assert given_pod(_JSON).uid_invented


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(core_pb2.Node(metadata=core_pb2.ObjectMeta(name="node")), id="message"),
        pytest.param({"metadata": {"name": "node"}}, id="mapping"),
        pytest.param("metadata: {name: node}", id="yaml"),
        pytest.param(k8s.V1Node(metadata=k8s.V1ObjectMeta(name="node")), id="kubernetes client"),
        pytest.param(
            core_pb2.Node(metadata=core_pb2.ObjectMeta(name="node")).SerializeToString(), id="bytes"
        ),
    ],
)
def test_a_node_in_every_form(node: Any) -> None:
    assert given_node(node) == core_pb2.Node(metadata=core_pb2.ObjectMeta(name="node"))


def test_what_is_no_node() -> None:
    with pytest.raises(InvalidRequest, match='kind: Unsupported value: "Pod"'):
        given_node({"kind": "Pod"})
