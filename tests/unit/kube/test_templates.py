from __future__ import annotations

from typing import Any

import pytest

from numalign.errors import InvalidInput
from numalign.kube.templates import pods_from_documents, pods_from_text

_SPEC = {"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]}


def _pod(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _SPEC}


def _workload(version: str, kind: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def _violations(*documents: object) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as caught:
        pods_from_documents(documents)
    return [(violation.field, violation.description) for violation in caught.value.violations]


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("v1", "ReplicationController"),
        ("apps/v1", "Deployment"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "DaemonSet"),
        ("apps/v1", "ReplicaSet"),
        ("batch/v1", "Job"),
    ],
)
def test_a_workload_gives_one_pod(version: str, kind: str) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": _SPEC}
    workload = _workload(
        version, kind, {"replicas": 3, "template": template}, name="web", namespace="n"
    )

    found = pods_from_documents([workload])

    (pod,) = found.pods
    assert found.ignored == ()
    assert (pod.metadata.name, pod.metadata.namespace) == ("web", "n")
    assert dict(pod.metadata.labels) == {"a": "b"}
    assert pod.spec.containers[0].resources.requests["cpu"].string == "2"
    assert len(pod.metadata.uid) == 36


def test_a_cron_job_gives_the_pod_of_its_job() -> None:
    spec = {"jobTemplate": {"spec": {"template": {"spec": _SPEC}}}}

    (pod,) = pods_from_documents([_workload("batch/v1", "CronJob", spec, name="nightly")]).pods

    assert (pod.metadata.name, pod.metadata.namespace) == ("nightly", "default")


def test_the_uid_depends_on_kind_namespace_and_name_alone() -> None:
    template = {"template": {"spec": _SPEC}}
    first, other_name, other_namespace, other_kind = pods_from_documents(
        [
            _pod(name="a"),
            _pod(name="b"),
            _pod(name="a", namespace="n"),
            _workload("batch/v1", "Job", template, name="a"),
        ]
    ).pods
    changed = {**_pod(name="a", labels={"x": "y"}), "status": {"phase": "Running"}}
    (again,) = pods_from_documents([changed]).pods

    assert again.metadata.uid == first.metadata.uid == "08e65ce2-af39-5bca-9485-b637073994fe"
    uids = {pod.metadata.uid for pod in (first, other_name, other_namespace, other_kind)}
    assert len(uids) == 4


def test_a_uid_and_names_that_are_given_stay() -> None:
    named = _workload(
        "batch/v1", "Job", {"template": {"metadata": {"name": "t"}, "spec": _SPEC}}, name="j"
    )
    pods = pods_from_documents([_pod(name="a", uid="u"), _pod(generateName="g-"), named]).pods

    assert pods[0].metadata.uid == "u"
    assert [pod.metadata.name for pod in pods] == ["a", "g", "t"]


def test_lists_are_opened() -> None:
    inner = _pod(name="b")
    bare = {key: value for key, value in _pod(name="c").items() if key in {"metadata", "spec"}}
    found = pods_from_documents(
        [
            {"apiVersion": "v1", "kind": "List", "items": [_pod(name="a"), inner]},
            {"apiVersion": "v1", "kind": "PodList", "items": [bare]},
            {"apiVersion": "v1", "kind": "List", "items": None},
            None,
        ]
    )

    assert [pod.metadata.name for pod in found.pods] == ["a", "b", "c"]


def test_what_is_left_aside_is_reported() -> None:
    pod = _pod(name="a")
    pod["spec"] = {**_SPEC, "dnsPolicy": "Default"}

    found = pods_from_documents(
        [
            {"apiVersion": "v1", "kind": "Service"},
            pod,
            _workload("batch.volcano.sh/v1alpha1", "Job", {}, name="v"),
        ]
    )

    assert len(found.pods) == 1
    assert found.ignored == (
        "documents[0]: kind Service of v1 starts no pods",
        "documents[1].spec.dnsPolicy: has no bearing on a node",
        "documents[2]: kind Job of batch.volcano.sh/v1alpha1 starts no pods",
    )


@pytest.mark.parametrize(
    ("document", "field", "description"),
    [
        pytest.param("x", "documents[0]", "Invalid value: must be an object", id="no-object"),
        pytest.param({"apiVersion": "v1"}, "documents[0].kind", "Required value", id="no-kind"),
        pytest.param(
            {"kind": "Pod"}, "documents[0].apiVersion", "Required value", id="no-version"),
        pytest.param(
            {"apiVersion": 1, "kind": "Pod"}, "documents[0]",
            "Invalid value: apiVersion and kind must be text", id="version-is-no-text"),
        pytest.param(
            _pod(), "documents[0].metadata.name",
            "Required value: name or generateName is required", id="no-name"),
        pytest.param(
            {"apiVersion": "v1", "kind": "List", "items": {}}, "documents[0].items",
            "Invalid value: must be a list", id="items"),
        pytest.param(
            {"apiVersion": "v1", "kind": "List", "items": [_pod(name=3)]},
            "documents[0].items[0].metadata.name",
            'Invalid value: "3": must be text', id="inside-a-list"),
        pytest.param(
            _workload("apps/v1", "Deployment", {}, name="w"), "documents[0].spec.template",
            "Required value", id="no-template"),
        pytest.param(
            _workload("apps/v1", "Deployment", {"template": 3}, name="w"),
            "documents[0].spec.template", "Invalid value: must be an object", id="template"),
        pytest.param(
            _workload("apps/v1", "Deployment", {"template": {"spec": {"containers": [{}]}}},
                      name="w"),
            "documents[0].spec.template.spec.containers[0].name", "Required value",
            id="invalid-pod"),
        pytest.param(
            _workload("apps/v1", "Deployment", {"template": {"spec": _SPEC}}, name=3),
            "documents[0].metadata.name", 'Invalid value: "3": must be text',
            id="name-of-the-workload"),
    ],
)  # fmt: skip
def test_one_fault(document: object, field: str, description: str) -> None:
    assert _violations(document) == [(field, description)]


def test_faults_of_all_documents_are_named_at_once() -> None:
    assert [field for field, _ in _violations(3, _pod(name="a"), _pod(name="a"), _pod())] == [
        "documents[0]",
        "documents[2].metadata.name",
        "documents[3].metadata.name",
    ]


def test_from_text() -> None:
    text = """
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
  - name: c
    resources: {limits: {cpu: 2, memory: 1.0}}
---
# nothing
"""
    (pod,) = pods_from_text(text).pods

    requests = pod.spec.containers[0].resources.requests
    assert {name: requests[name].string for name in requests} == {"cpu": "2", "memory": "1"}
