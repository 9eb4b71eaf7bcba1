"""The commands that ask running services: release, status, providers, machine."""

from __future__ import annotations

import json
from pathlib import Path

import grpc
import pytest
from tests.unit.cli.conftest import Run, Scripted

from numalign.v1 import admission_pb2 as ad
from numalign.v1 import control_pb2 as ct
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import types_pb2 as pb

RECORD = pb.AdmissionRecord(
    pod_uid="u1",
    namespace="shop",
    name="web",
    owner="agent",
    qos_class="Guaranteed",
    allocations=[pb.ContainerAllocation(container="c", cpus="2-3")],
)
LISTED = ad.ListAdmissionsResponse(admissions=[RECORD], revision=12, shared_cpus="0-1")
UP = ct.GetStatusResponse(
    version="9.9",
    pid=77,
    compatibility="safe",
    reports=["re-based"],
    placement=["numalign.placement.numaAllocationStrategy: most-allocated"],
)
PROVIDERS = tm.ListHintProvidersResponse(
    providers=[
        tm.HintProviderStatus(name="cpu", instance_id="i", resources=["cpu"], built_in=True),
        tm.HintProviderStatus(
            name="licences",
            last_error="UNAVAILABLE: [gone]",
            failure_policy=pb.FAILURE_POLICY_IGNORE,
        ),
    ]
)
MACHINE = """\
machine:
  numa_nodes:
  - {id: 0, memory_bytes: 1073741824, cores: [{id: 0, socket_id: 0, threads: [0, 2]}]}
  - {id: 1, memory_bytes: 1073741824, cores: [{id: 1, socket_id: 1, threads: [1, 3]}]}
"""


def start_all(scripted: Scripted) -> None:
    scripted("admission", ListAdmissions=LISTED, GetStatus=UP)
    scripted("topology", ListHintProviders=PROVIDERS, GetStatus=UP)
    scripted(
        "cpu",
        GetStatus=UP,
        GetState=hp.GetStateResponse(
            cpu=hp.CpuState(
                default_cpus="0-2",
                reserved_cpus="0",
                assignments=[hp.CpuAssignment(pod_uid="u1", container="c", cpus="3")],
            )
        ),
    )
    scripted("memory", GetStatus=UP, GetState=hp.GetStateResponse(memory=hp.MemoryState()))
    scripted("device", GetStatus=UP, GetState=hp.GetStateResponse(device=hp.DeviceState()))


def test_status(run: Run, scripted: Scripted) -> None:
    start_all(scripted)
    result = run("status")

    assert result.exit_code == 0, result.output
    for expected in ("shop/web", "agent", "Guaranteed", "2-3", "shared CPUs 0-1   revision 12"):
        assert expected in result.stdout
    assert result.stdout.count(" 77 ") == 5
    assert "note: re-based" in result.stdout
    switch = "beyond a kubelet's placement: numalign.placement.numaAllocationStrategy"
    assert result.stdout.count(f"{switch}: most-allocated") == 1
    assert "licences (third party)" in result.stdout
    assert "UNAVAILABLE: [gone]" in result.stdout


def test_status_of_what_is_down(run: Run, scripted: Scripted, tmp_path: Path) -> None:
    scripted("admission", ListAdmissions=LISTED, GetStatus=UP)
    result = run("status", "-o", "json")
    document = json.loads(result.stdout)

    assert result.exit_code == 1
    assert document["admissions"]["revision"] == "12"
    assert document["providers"] is None
    states = {entry["service"]: entry for entry in document["services"]}
    assert states["admission"]["status"]["pid"] == "77"
    assert states["cpu"]["status"] is None
    assert states["cpu"]["error"] == "No such file or directory"
    assert (
        f"numalign: topology service at {tmp_path}/topology.sock: No such file or directory\n"
    ) in result.stderr


def test_providers(run: Run, scripted: Scripted) -> None:
    scripted("topology", ListHintProviders=PROVIDERS)
    table = run("providers").stdout
    document = json.loads(run("providers", "-o", "json").stdout)

    assert table.index("cpu") < table.index("licences")
    assert "go on without" in table
    assert [provider["name"] for provider in document["providers"]] == ["cpu", "licences"]


def test_release_by_uid_and_by_manifest(run: Run, scripted: Scripted, tmp_path: Path) -> None:
    service = scripted("admission", Release=ad.ReleaseResponse(revision=13))
    manifest = tmp_path / "pod.yaml"
    manifest.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u2}\n"
        "spec: {containers: [{name: c, image: i}]}\n"
    )
    result = run("release", "u1", str(manifest), "-o", "json")

    assert result.exit_code == 0, result.output
    assert [request.pod_uid for request in service.requests] == ["u1", "u2"]
    assert json.loads(result.stdout)["released"] == [
        {"podUid": "u1", "revision": "13"},
        {"podUid": "u2", "revision": "13"},
    ]


def test_release_by_name(run: Run, scripted: Scripted) -> None:
    twice = [pb.AdmissionRecord(pod_uid=uid, namespace="shop", name="db") for uid in ("u3", "u4")]
    service = scripted(
        "admission",
        ListAdmissions=ad.ListAdmissionsResponse(admissions=[RECORD, *twice]),
        Release=ad.ReleaseResponse(revision=13),
    )
    result = run("release", "shop/web", "default/web", "shop/db")

    assert result.exit_code == 1
    assert result.stdout == "u1 released, revision 13\n"
    assert result.stderr.splitlines() == [
        "numalign: default/web: no pod of this name is admitted",
        "numalign: shop/db: several pods have this name: u3, u4",
    ]
    released = [one for one in service.requests if isinstance(one, ad.ReleaseRequest)]
    assert [one.pod_uid for one in released] == ["u1"]


def test_release_of_a_pod_that_is_not_admitted(run: Run, scripted: Scripted) -> None:
    def answer(request: ad.ReleaseRequest, context: grpc.ServicerContext) -> ad.ReleaseResponse:
        if request.pod_uid == "u1":
            context.abort(grpc.StatusCode.NOT_FOUND, 'pod_uid: pod "u1" is not admitted')
        return ad.ReleaseResponse(revision=2)

    scripted("admission", Release=answer)
    result = run("release", "u1", "u2")

    assert result.exit_code == 1
    assert result.stdout == "u2 released, revision 2\n"
    assert result.stderr == 'numalign: pod_uid: pod "u1" is not admitted (NOT_FOUND)\n'


@pytest.fixture
def machine_file(tmp_path: Path) -> str:
    path = tmp_path / "machine.yaml"
    path.write_text(MACHINE)
    return str(path)


def test_machine_with_owners(run: Run, scripted: Scripted, machine_file: str) -> None:
    start_all(scripted)
    result = run("machine", "--file", machine_file)

    assert result.exit_code == 0, result.output
    assert "[0x 2.]" in result.stdout
    assert "[1. 3A]" in result.stdout
    assert "A  shop/web/c" in result.stdout
    assert result.stderr == ""


def test_machine_without_services(
    run: Run, machine_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMALIGN_SOCKET")
    result = run("machine", "--file", machine_file, "-o", "json")
    document = json.loads(result.stdout)

    assert result.exit_code == 0
    assert result.stderr == ""
    assert [node["id"] for node in document["machine"]["numa_nodes"]] == [0, 1]
    assert document["cpu"] is None


def test_machine_says_who_did_not_answer(run: Run, machine_file: str) -> None:
    result = run("machine", "--file", machine_file)

    assert result.exit_code == 0
    assert "no answer from cpu, memory, device, admission" in result.stderr


def test_machine_of_a_configuration(
    run: Run, machine_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMALIGN_SOCKET")
    config = tmp_path / "config.yaml"
    config.write_text(
        f"numalign: {{machine: {{file: machine.yaml}}, runtimeDirectory: {tmp_path}, "
        f"stateDirectory: {tmp_path}}}\n"
    )
    result = run("machine", "--config", str(config), "-o", "json")

    assert json.loads(result.stdout)["machine"]["numa_nodes"][1]["cores"][0]["threads"] == [1, 3]


def test_machine_from_two_places(run: Run, machine_file: str) -> None:
    assert run("machine", "--file", machine_file, "--root", "/").exit_code == 2


def test_machine_file_that_is_wrong(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text("numa_nodes: [{id: 64}, {id: -1}]\n")
    result = run("machine", "--file", str(path))

    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 2
    assert f"numalign: {path}: numa_nodes[0].id: " in result.stderr
