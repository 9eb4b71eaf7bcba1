"""What an operator may write into a manifest, and what is said to mistakes (CFG-8, CFG-9)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.agent.manifests.texts import ORIGIN, manifest, read

from numalign_agent.manifests.errors import InvalidPod, ManifestError, NotAPod
from numalign_agent.manifests.manifest import READ_LIMIT, read_pod, read_pod_list
from numalign_agent.manifests.placing import Origin

PROBE = {"httpGet": {"port": 80}}
VOLUME = {"name": "v", "hostPath": {"path": "/data"}}


@pytest.mark.parametrize(
    ("document", "field"),
    [
        pytest.param(manifest(metadata={"name": "a_b"}), "metadata.name", id="name"),
        pytest.param(
            manifest(metadata={"labels": {"a": "b c"}}), "metadata.labels", id="label-value"
        ),
        pytest.param(manifest(metadata={"labels": {"-": "b"}}), "metadata.labels", id="label-key"),
        pytest.param(
            manifest(metadata={"annotations": {"a/b/c": "x"}}),
            "metadata.annotations",
            id="annotation-key",
        ),
        pytest.param(
            manifest(metadata={"annotations": {"a": "x" * 300_000}}),
            "metadata.annotations",
            id="annotations-too-long",
        ),
        pytest.param(manifest(container={"name": "C"}), "spec.containers[0].name", id="container"),
        pytest.param(
            manifest(container={"image": " nginx"}), "spec.containers[0].image", id="image-space"
        ),
        pytest.param(
            manifest(container={"env": [{"value": "x"}]}),
            "spec.containers[0].env[0].name",
            id="env-without-name",
        ),
        pytest.param(
            manifest(container={"env": [{"name": "A=B"}]}),
            "spec.containers[0].env[0].name",
            id="env-name",
        ),
        pytest.param(
            manifest(container={"env": [{"name": "A", "valueFrom": {}}]}),
            "spec.containers[0].env[0].valueFrom",
            id="env-from-nothing",
        ),
        pytest.param(
            manifest(container={"envFrom": [{"prefix": "A"}]}),
            "spec.containers[0].envFrom[0]",
            id="env-from-no-source",
        ),
        pytest.param(
            manifest(container={"ports": [{"name": "http"}]}),
            "spec.containers[0].ports[0].containerPort",
            id="port-without-number",
        ),
        pytest.param(
            manifest(container={"ports": [{"containerPort": 1, "hostPort": 70000}]}),
            "spec.containers[0].ports[0].hostPort",
            id="host-port",
        ),
        pytest.param(
            manifest(container={"ports": [{"containerPort": 1, "protocol": "HTTP"}]}),
            "spec.containers[0].ports[0].protocol",
            id="protocol",
        ),
        pytest.param(
            manifest(
                container={
                    "ports": [
                        {"containerPort": 1, "name": "a"},
                        {"containerPort": 2, "name": "a"},
                    ]
                }
            ),
            "spec.containers[0].ports[1].name",
            id="port-name-twice",
        ),
        pytest.param(
            manifest(container={"livenessProbe": {}}),
            "spec.containers[0].livenessProbe",
            id="probe-does-nothing",
        ),
        pytest.param(
            manifest(container={"livenessProbe": {**PROBE, "exec": {"command": ["x"]}}}),
            "spec.containers[0].livenessProbe.httpGet",
            id="probe-does-two-things",
        ),
        pytest.param(
            manifest(container={"livenessProbe": {**PROBE, "successThreshold": 2}}),
            "spec.containers[0].livenessProbe.successThreshold",
            id="probe-succeeds-twice",
        ),
        pytest.param(
            manifest(container={"readinessProbe": {**PROBE, "periodSeconds": -1}}),
            "spec.containers[0].readinessProbe.periodSeconds",
            id="probe-number",
        ),
        pytest.param(
            manifest(container={"lifecycle": {"preStop": {"exec": {}}}}),
            "spec.containers[0].lifecycle.preStop.exec.command",
            id="hook-without-command",
        ),
        pytest.param(
            manifest(
                spec={"initContainers": [{"name": "i", "image": "x", "readinessProbe": PROBE}]}
            ),
            "spec.initContainers[0].readinessProbe",
            id="probe-of-an-init-container",
        ),
        pytest.param(
            manifest(spec={"initContainers": [{"name": "c", "image": "x"}]}),
            "spec.initContainers[0].name",
            id="name-of-an-init-container",
        ),
        pytest.param(
            manifest(container={"volumeMounts": [{"name": "v", "mountPath": "/a"}]}),
            "spec.containers[0].volumeMounts[0].name",
            id="mount-without-volume",
        ),
        pytest.param(
            manifest(spec={"volumes": [VOLUME, VOLUME]}), "spec.volumes[1].name", id="volume-twice"
        ),
        pytest.param(
            manifest(spec={"volumes": [{**VOLUME, "emptyDir": {}}]}),
            "spec.volumes[0].hostPath",
            id="volume-is-two-things",
        ),
        pytest.param(
            manifest(spec={"volumes": [{"name": "v", "hostPath": {"path": "/x", "type": "dir"}}]}),
            "spec.volumes[0].hostPath.type",
            id="host-path-type",
        ),
        pytest.param(
            manifest(spec={"volumes": [{"name": "v", "hostPath": {"path": "/x/../y"}}]}),
            "spec.volumes[0].hostPath.path",
            id="host-path-goes-up",
        ),
        pytest.param(
            manifest(spec={"tolerations": [{"operator": "Equal"}]}),
            "spec.tolerations[0].operator",
            id="toleration-without-key",
        ),
        pytest.param(
            manifest(spec={"tolerations": [{"key": "k", "tolerationSeconds": 3}]}),
            "spec.tolerations[0].effect",
            id="toleration-seconds",
        ),
        pytest.param(
            manifest(spec={"terminationGracePeriodSeconds": -1}),
            "spec.terminationGracePeriodSeconds",
            id="grace",
        ),
        pytest.param(
            manifest(spec={"activeDeadlineSeconds": 0}), "spec.activeDeadlineSeconds", id="deadline"
        ),
        pytest.param(manifest(spec={"dnsPolicy": "none"}), "spec.dnsPolicy", id="dns-policy"),
        pytest.param(manifest(spec={"os": {"name": "plan9"}}), "spec.os.name", id="os"),
        pytest.param(manifest(spec={"hostname": "A"}), "spec.hostname", id="hostname"),
        pytest.param(
            manifest(container={"resources": {"requests": {"cpu": "-1"}}}),
            "spec.containers[0].resources.requests[cpu]",
            id="negative-amount",
        ),
        pytest.param(
            manifest(spec={"ephemeralContainers": [{"name": "e", "image": "x"}]}),
            "spec.ephemeralContainers",
            id="ephemeral",
        ),
    ],
)
def test_what_the_api_server_would_refuse(document: object, field: str) -> None:
    with pytest.raises(InvalidPod) as refused:
        read(document)

    assert [violation.field for violation in refused.value.violations] == [field]
    assert str(refused.value).startswith(f"invalid pod: [{field}: ")


@pytest.mark.parametrize(
    ("document", "why"),
    [
        pytest.param(manifest(spec={"hostPID": "yes"}), "spec.hostPID: must be true", id="text"),
        pytest.param(manifest(spec={"priority": 1.5}), "spec.priority: must be an int", id="float"),
        pytest.param(manifest(spec={"priority": 2**31}), "spec.priority: must be betw", id="range"),
        pytest.param(
            manifest(spec={"containers": {}}), "spec.containers: must be a list", id="map"
        ),
        pytest.param(
            manifest(spec={"containers": ["c"]}), "spec.containers[0]: must be an obj", id="item"
        ),
        pytest.param(
            manifest(metadata={"labels": ["x"]}), "metadata.labels: must be an obj", id="list"
        ),
        pytest.param(
            manifest(metadata={"labels": {"a": 1}}), "metadata.labels[a]: must be te", id="value"
        ),
        pytest.param(
            manifest(metadata={"creationTimestamp": "monday"}),
            "metadata.creationTimestamp: must be a time",
            id="time",
        ),
        pytest.param(
            manifest(container={"resources": {"limits": {"cpu": True}}}),
            "spec.containers[0].resources.limits[cpu]: must be a quantity",
            id="quantity",
        ),
    ],
)
def test_what_does_not_fit_its_field(document: object, why: str) -> None:
    with pytest.raises(NotAPod) as refused:
        read(document)

    assert str(refused.value).startswith(f"/manifests/web.yaml: couldn't parse as pod({why}"), (
        refused.value
    )


def test_every_wrong_value_is_named_at_once() -> None:
    with pytest.raises(NotAPod, match=r"metadata\.name: must be text; spec\.priority: must be"):
        read(manifest(metadata={"name": 1}, spec={"priority": "high"}))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"\xff\xfe", "codec", id="no-text"),
        pytest.param(b"", "the first document is empty", id="empty"),
        pytest.param(b"- a\n", "must be an object", id="list"),
        pytest.param(b"{a: 1}", "cannot be decoded", id="flow-mapping"),
        pytest.param(b"kind: [Pod]\napiVersion: v1\n", "is kind", id="kind-is-a-list"),
        pytest.param(b'{"kind": "Pod", "apiVersion": "v1", "x": NaN', "decoded", id="half"),
    ],
)
def test_what_is_no_pod_at_all(data: bytes, why: str) -> None:
    with pytest.raises(NotAPod, match=why):
        read_pod(data, ORIGIN)


def test_a_manifest_that_is_too_long() -> None:
    with pytest.raises(ManifestError, match="the read limit is reached"):
        read_pod(b"#" * (READ_LIMIT + 1), ORIGIN)


def test_few_bytes_that_unfold_into_very_many_values() -> None:
    tenfold = ["a: &a [{key: k, path: p}]"]
    for name, before in zip("bcdefg", "abcdef", strict=True):
        tenfold.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]")
    items = "[" + ", ".join(["*i"] * 700) + "]"
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nx: &i {key: k, path: p}\n"
        + "\n".join(tenfold)
        + f"\ny: &s {{secret: {{items: {items}}}}}\n"
        + f"spec: {{volumes: [{{name: v, projected: {{sources: [{', '.join(['*s'] * 700)}]}}}}]}}\n"
    )

    with pytest.raises(NotAPod, match="more than 200000 values"):
        read_pod(text.encode(), ORIGIN)


def test_what_a_pod_gets_on_this_node() -> None:
    pod = read(manifest(metadata={"annotations": {"a": "b"}}), Origin("Node.A".lower(), "/x"))

    assert (pod.name, pod.namespace, pod.phase) == ("web-node.a", "default", "Pending")
    assert pod.spec["nodeName"] == "node.a"
    assert pod.annotations == {"a": "b", "kubernetes.io/config.hash": pod.uid}
    assert pod.spec["tolerations"] == [{"operator": "Exists", "effect": "NoExecute"}]


def test_a_pod_from_an_address_is_the_same_on_every_node_and_tolerates_nothing() -> None:
    one, other = (read(manifest(), Origin(node, "http://x/", is_url=True)) for node in ("a", "b"))

    assert one.uid == other.uid
    assert "tolerations" not in one.spec


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param({}, {"command": None}, True, id="null-is-nothing"),
        pytest.param({}, {"tty": False}, True, id="zero-is-nothing"),
        pytest.param({}, {"imagePullPolicy": "Always"}, True, id="default"),
        pytest.param({}, {"command": []}, False, id="empty-list"),
        pytest.param({}, {"resources": {}}, True, id="empty-value"),
        pytest.param({}, {"securityContext": {}}, False, id="empty-object"),
        pytest.param(
            {"resources": {"limits": {"cpu": 1}}},
            {"resources": {"limits": {"cpu": "1.0"}}},
            True,
            id="number",
        ),
        pytest.param(
            {"resources": {"limits": {"cpu": 1}}},
            {"resources": {"limits": {"cpu": "1000m"}}},
            False,
            id="spelling",
        ),
        pytest.param(
            {"securityContext": {"runAsUser": 0}}, {"securityContext": {}}, False, id="kept-zero"
        ),
    ],
)
def test_what_a_generated_uid_depends_on(one: Any, other: Any, same: bool) -> None:
    assert (read(manifest(container=one)).uid == read(manifest(container=other)).uid) == same


def test_a_list_of_pods() -> None:
    text = b'{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a"}}]}'

    with pytest.raises(InvalidPod, match=r"spec\.containers: Required value"):
        read_pod_list(text, ORIGIN)
    with pytest.raises(NotAPod, match="must be a v1 Pod"):
        read_pod(text, ORIGIN)
    with pytest.raises(NotAPod, match="items: must be a list"):
        read_pod_list(b'{"apiVersion":"v1","kind":"PodList","items":3}', ORIGIN)
