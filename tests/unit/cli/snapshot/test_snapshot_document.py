"""A snapshot as a file: whole again when read, without secrets, refused where it is none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from numalign.cli.snapshot.document import document_of, read_snapshot
from numalign.cli.snapshot.values import AdmittedPod, NodeSnapshot
from numalign.errors import ConfigError
from numalign.kube.pod_json import pod_from_json
from numalign.v1 import control_pb2 as ct
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import types_pb2 as pb
from numalign.v1.node_resources_pb2 import NodeResources

SECRET = "hunter2"
POD = pod_from_json(
    {
        "metadata": {
            "name": "web",
            "namespace": "default",
            "uid": "uid-web",
            "annotations": {"note": SECRET, "kubernetes.io/config.mirror": "x"},
        },
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "command": [SECRET],
                    "args": [SECRET],
                    "env": [{"name": "PASSWORD", "value": SECRET}],
                    "resources": {"requests": {"cpu": "1"}},
                }
            ]
        },
    }
)
UNKNOWN_FIELD = b"\xfa\x7d\x07" + SECRET.encode()


def snapshot() -> NodeSnapshot:
    return NodeSnapshot(
        taken="2026-01-31T08:00:00Z",
        node="n1",
        configuration={"numalign": {"machine": {}}},
        revision=7,
        admissions=(
            AdmittedPod(
                pb.AdmissionRecord(pod_uid="uid-web", namespace="default", name="web"),
                POD.SerializeToString() + UNKNOWN_FIELD,
            ),
        ),
        shared_cpus="0-3",
        resources=NodeResources(revision=7),
        providers=(tm.HintProviderStatus(name="cpu", built_in=True),),
        services={"cpu": ct.GetStatusResponse(pid=3)},
        decisions=(dc.DecisionRecord(number=1, name="web"),),
        cpu=hp.CpuState(policy="static"),
    )


def written(path: Path, document: Any) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", document_of(snapshot()))
    found = read_snapshot(path)
    assert replace(found, admissions=()) == replace(snapshot(), admissions=())
    (admitted,) = found.admissions
    assert admitted.record == snapshot().admissions[0].record
    assert document_of(found) == document_of(snapshot())


def test_what_pods_run_is_left_out_and_what_decides_is_not(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", document_of(snapshot()))
    (admitted,) = read_snapshot(path).admissions
    assert SECRET.encode() not in admitted.pod
    assert b"PASSWORD" not in admitted.pod
    kept = type(POD).FromString(admitted.pod)
    assert kept.spec.containers[0].resources == POD.spec.containers[0].resources
    assert dict(kept.metadata.annotations) == {"kubernetes.io/config.mirror": "x"}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param(
            {"version": 2}, "is a snapshot of version 2, and this .* version 1: take it", id="newer"
        ),
        pytest.param({"version": None}, "is a snapshot of version None", id="no-version"),
        pytest.param({"kind": "Pod"}, "is no snapshot; `numalign snapshot` writes one", id="kind"),
        pytest.param({"admissions": {}}, "admissions: must be a list", id="list"),
        pytest.param({"admissions": [3]}, "admissions: must be a list of mappings", id="entries"),
        pytest.param(
            {"admissions": [{"record": {}, "pod": "?"}]},
            r"admissions\[0\].pod: is no base64",
            id="pod",
        ),
        pytest.param({"cpu": {"colour": 1}}, "cpu: .*colour", id="unknown-field"),
        pytest.param(
            {"cpu": {"assignments": [{"cpus": "0-3"}, {"cpus": "a"}]}},
            r'cpu.assignments\[1\].cpus: "a" is no list of CPUs: ',
            id="CPU list",
        ),
        pytest.param(
            {"admissions": [{"record": {"allocations": [{"cpus": "x"}]}, "pod": ""}]},
            r'admissions\[0\].record.allocations\[0\].cpus: "x" is no list of CPUs: ',
            id="CPU list of a record",
        ),
        pytest.param({"revision": "x"}, "revision: must be a whole number", id="number"),
        pytest.param({"taken": 1}, "taken: must be text", id="text"),
        pytest.param({"services": []}, "services: must be a mapping", id="mapping"),
    ],
)
def test_what_is_no_snapshot_is_named(tmp_path: Path, change: Any, text: str) -> None:
    path = written(tmp_path / "a.json", {**document_of(snapshot()), **change})
    with pytest.raises(ConfigError, match=f"^{path}: {text}"):
        read_snapshot(path)


@pytest.mark.parametrize(
    ("content", "text"),
    [("{", "is no snapshot: "), ("[]", "is no snapshot; "), ("", "is no snapshot: ")],
)
def test_files_of_something_else(tmp_path: Path, content: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        read_snapshot(written(tmp_path / "a.json", content))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing: No such file"):
        read_snapshot(tmp_path / "nothing")
