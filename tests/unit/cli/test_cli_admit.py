"""`numalign admit` against a scripted Admission service."""

from __future__ import annotations

import json
from pathlib import Path

import grpc
import pytest
import yaml
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc.error_details_pb2 import BadRequest
from google.rpc.status_pb2 import Status
from tests.unit.cli.conftest import Run, Scripted

from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

PODS = """\
apiVersion: v1
kind: Pod
metadata: {name: one, uid: u1}
spec: {containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Service
metadata: {name: ignored}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: two, namespace: shop}
spec:
  template:
    spec: {containers: [{name: c, image: i}]}
"""
ADMITTED = ad.AdmitResponse(
    verdict=pb.VERDICT_ADMITTED,
    allocations=[
        pb.ContainerAllocation(container="c", cpus="2-3", affinity=pb.Hint(mask=1, preferred=True))
    ],
    revision=4,
)
REJECTED = ad.AdmitResponse(
    verdict=pb.VERDICT_REJECTED,
    handler="topology-manager",
    reason="TopologyAffinityError",
    message="Resources cannot be allocated with Topology locality",
    explanation=pb.Explanation(summary="Rejected because of u9."),
)
DEFERRED = ad.AdmitResponse(verdict=pb.VERDICT_DEFERRED, reason="DevicePluginNotReady")


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    path = tmp_path / "pods.yaml"
    path.write_text(PODS)
    return str(path)


def by_name(**answers: ad.AdmitResponse) -> object:
    def answer(request: ad.AdmitRequest, context: object) -> ad.AdmitResponse:
        del context
        return answers[request.pod.metadata.name]

    return answer


def test_pods_are_resized(run: Run, scripted: Scripted, manifest: str) -> None:
    service = scripted("admission", Admit=ADMITTED)
    result = run("admit", manifest, "--resize")

    assert result.exit_code == 0, result.output
    assert {r.operation for r in service.requests} == {pb.OPERATION_RESIZE}


def test_pods_are_asked_about_in_order(run: Run, scripted: Scripted, manifest: str) -> None:
    service = scripted("admission", Admit=ADMITTED)
    result = run("admit", manifest, "--dry-run", "--explain", "full", "--owner", "me")

    assert result.exit_code == 0, result.output
    assert [r.pod.metadata.name for r in service.requests] == ["one", "two"]
    assert service.requests[1].pod.metadata.namespace == "shop"
    for request in service.requests:
        assert request.operation == pb.OPERATION_ADD
        assert request.dry_run
        assert request.owner == "me"
        assert request.explain == pb.EXPLAIN_LEVEL_FULL
    assert "kind Service of v1 starts no pods" in result.stderr


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        pytest.param(ADMITTED, 0, id="admitted"),
        pytest.param(REJECTED, 3, id="rejected"),
        pytest.param(DEFERRED, 4, id="deferred"),
    ],
)
def test_the_exit_code_is_that_of_the_worst(
    run: Run, scripted: Scripted, manifest: str, second: ad.AdmitResponse, expected: int
) -> None:
    scripted("admission", Admit=by_name(one=ADMITTED, two=second))

    assert run("admit", manifest).exit_code == expected


def test_a_table_says_what_was_decided(run: Run, scripted: Scripted, manifest: str) -> None:
    scripted("admission", Admit=by_name(one=ADMITTED, two=REJECTED))
    output = run("admit", manifest).stdout

    assert "default/one  admitted" in output
    assert "2-3" in output
    assert "{0} preferred" in output
    assert "shop/two  rejected  TopologyAffinityError" in output
    assert "Resources cannot be allocated with Topology locality" in output
    assert "Rejected because of u9." in output


def test_pods_that_stand_in_the_way_are_named(run: Run, scripted: Scripted, manifest: str) -> None:
    refused = ad.AdmitResponse()
    refused.CopyFrom(REJECTED)
    refused.explanation.obstacles.add(container="c", resources=["cpu"])
    record = pb.AdmissionRecord(pod_uid="u9", namespace="n", name="big")
    scripted(
        "admission",
        Admit=refused,
        ListAdmissions=ad.ListAdmissionsResponse(admissions=[record]),
    )

    assert "Rejected because of n/big." in run("admit", manifest).stdout


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_programs_get_everything(run: Run, scripted: Scripted, manifest: str, output: str) -> None:
    scripted("admission", Admit=by_name(one=ADMITTED, two=REJECTED))
    text = run("-o", output, "admit", manifest).stdout
    document = json.loads(text) if output == "json" else yaml.safe_load(text)
    one, two = document["pods"]

    assert one["pod"] == {"uid": "u1", "namespace": "default", "name": "one"}
    assert one["decision"]["verdict"] == "VERDICT_ADMITTED"
    assert one["decision"]["allocations"][0]["affinity"] == {"mask": "1", "preferred": True}
    assert one["decision"]["dryRun"] is False
    assert two["decision"]["reason"] == "TopologyAffinityError"


def test_the_nearer_output_option_wins(run: Run, scripted: Scripted, manifest: str) -> None:
    scripted("admission", Admit=ADMITTED)

    assert json.loads(run("-o", "yaml", "admit", manifest, "-o", "json").stdout)


def test_standard_input(run: Run, scripted: Scripted) -> None:
    service = scripted("admission", Admit=ADMITTED)
    result = run("admit", "-", stdin=PODS)

    assert result.exit_code == 0
    assert len(service.requests) == 2


def test_wrong_fields_are_named_and_the_others_are_asked(
    run: Run, scripted: Scripted, manifest: str
) -> None:
    def answer(request: ad.AdmitRequest, context: grpc.ServicerContext) -> ad.AdmitResponse:
        if request.pod.metadata.name == "one":
            packed = AnyMessage()
            packed.Pack(
                BadRequest(
                    field_violations=[
                        BadRequest.FieldViolation(field="spec.x", description="Required value"),
                        BadRequest.FieldViolation(field="spec.y", description="odd"),
                    ]
                )
            )
            status = Status(code=3, message="wrong", details=[packed])
            context.set_trailing_metadata(
                (("grpc-status-details-bin", status.SerializeToString()),)
            )
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "wrong")
        return ADMITTED

    scripted("admission", Admit=answer)
    result = run("admit", manifest)

    assert result.exit_code == 1
    assert "shop/two  admitted" in result.stdout
    assert "numalign: default/one: spec.x: Required value\n" in result.stderr
    assert "numalign: default/one: spec.y: odd\n" in result.stderr


def test_a_provider_that_is_down_ends_it(run: Run, scripted: Scripted, manifest: str) -> None:
    def answer(_: ad.AdmitRequest, context: grpc.ServicerContext) -> ad.AdmitResponse:
        context.abort(grpc.StatusCode.UNAVAILABLE, "hint provider cpu: down")

    service = scripted("admission", Admit=answer)
    result = run("admit", manifest, "-o", "json")

    assert result.exit_code == 1
    assert len(service.requests) == 1
    assert json.loads(result.stdout)["pods"][0]["error"] == [
        "hint provider cpu: down (UNAVAILABLE)"
    ]
    assert "1 more pods were not asked about" in result.stderr


def test_nobody_listens(run: Run, tmp_path: Path, manifest: str) -> None:
    result = run("admit", manifest)

    assert result.exit_code == 1
    assert result.stdout == ""
    assert (
        f"numalign: cannot reach the admission service at {tmp_path}/admission.sock: "
        "No such file or directory"
    ) in result.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: 1\n---\nb: [\n", "documents[1]: cannot be decoded: ", id="yaml"),
        pytest.param(
            PODS.replace("name: c, image: i", "image: i", 1),
            "documents[0].spec.containers[0].name: Required value",
            id="field",
        ),
        pytest.param("apiVersion: v1\nkind: Service\n", "there is no pod in it", id="no-pod"),
        pytest.param("\udcff", "is not UTF-8", id="not-utf-8"),
    ],
)
def test_what_is_wrong_with_a_manifest_is_named(
    run: Run, tmp_path: Path, text: str, expected: str
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    result = run("admit", str(path))

    assert result.exit_code == 1
    assert f"numalign: {path}: {expected}" in result.stderr
    assert "Traceback" not in result.output


def test_bad_yaml_names_its_line(run: Run) -> None:
    result = run("admit", "-", stdin="a: 1\n---\nb: [\n")

    assert "numalign: standard input: documents[1]: " in result.stderr
    assert "line 4" in result.stderr


def test_a_file_that_is_not_there(run: Run) -> None:
    result = run("admit", "nowhere.yaml")

    assert result.exit_code == 1
    assert result.stderr == "numalign: nowhere.yaml: No such file or directory\n"


def test_usage(run: Run) -> None:
    assert run("admit").exit_code == 2
    assert run("admit", "x", "--explain", "loudly").exit_code == 2


def test_what_is_wrong_with_every_manifest_is_named_at_once(run: Run, tmp_path: Path) -> None:
    texts = {"broken.yaml": b"a: [", "latin.yaml": b"\xff", "empty.yaml": b""}
    for name, data in texts.items():
        (tmp_path / name).write_bytes(data)
    names = [*texts, "missing.yaml"]
    result = run("admit", *(str(tmp_path / name) for name in names), str(tmp_path))

    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert len(lines) == len(names) + 1
    for name, line in zip(names, lines, strict=False):
        assert line.startswith(f"numalign: {tmp_path}/{name}: ")
    assert lines[-1] == f"numalign: {tmp_path}: Is a directory"


def test_a_request_that_is_too_large_is_said_in_plain_words(run: Run, scripted: Scripted) -> None:
    scripted("admission", Admit=ad.AdmitResponse())
    text = PODS.replace("uid: u1", "annotations: {big: " + "x" * (5 << 20) + "}", 1)
    result = run("admit", "-", stdin=text)

    assert result.exit_code == 1
    assert "bytes, and a service takes 4194304" in result.stderr
    assert "shop/two" not in result.stderr
