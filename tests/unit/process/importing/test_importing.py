"""A kubelet's state files taken over, with the pods at hand and without."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from tests.integration.books import faults_of
from tests.unit.process.observed_world import GPU, document, pod

from numalign.cli.main import cli
from numalign.config.loader import load_settings
from numalign.config.settings import Service, Settings
from numalign.kube.deviceplugin.v1beta1 import api_pb2 as dp
from numalign.kubelet_files.allocation_checkpoint import (
    AllocatedResources,
    AllocationCheckpoint,
    PodAllocation,
    write_allocation_checkpoint,
)
from numalign.kubelet_files.cpu_checkpoint import CpuCheckpoint, write_cpu_checkpoint
from numalign.kubelet_files.device_checkpoint import (
    DeviceCheckpoint,
    DeviceEntry,
    write_device_checkpoint,
)
from numalign.kubelet_files.memory_checkpoint import MemoryCheckpoint, write_memory_checkpoint
from numalign.model.cpu_set import CpuSet
from numalign.model.ids import DeviceId, NumaId, PodUid
from numalign.model.quantity import Quantity
from numalign.process.node import Node
from numalign.provider.values import MemoryBlock
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import hint_provider_pb2_grpc as hp_grpc

GIB = 1 << 30


@dataclass
class Host:
    """A configuration of ours and a kubelet's root directory."""

    directory: Path

    @property
    def root(self) -> Path:
        return self.directory / "kubelet"

    @property
    def config(self) -> Path:
        return self.directory / "config.yaml"

    def settings(self) -> Settings:
        return load_settings(self.config, {}, False)

    def configure(self, **kubelet: Any) -> None:
        self.config.write_text(yaml.safe_dump(document(self.directory) | kubelet))

    def kubelet(
        self,
        cpus: Mapping[str, str],
        memory: Mapping[str, int] | None = None,
        devices: Mapping[str, str] | None = None,
    ) -> None:
        """State files in which each pod has one container `c`."""
        (self.root / "device-plugins").mkdir(parents=True)
        held = {PodUid(uid): {"c": CpuSet.parse(text)} for uid, text in cpus.items()}
        shared = CpuSet.parse("0-15")
        for containers in held.values():
            shared -= containers["c"]
        cpu = CpuCheckpoint(policy_name="static", default_cpus=shared, assignments=held)
        (self.root / "cpu_manager_state").write_text(
            write_cpu_checkpoint(cpu, pod_level_resource_managers=False)
        )
        blocks = {
            PodUid(uid): {
                "c": (MemoryBlock(numa_nodes=(NumaId(0),), resource="memory", size=size),)
            }
            for uid, size in (memory or {}).items()
        }
        books = MemoryCheckpoint(policy_name="Static", assignments=blocks)
        (self.root / "memory_manager_state").write_text(
            write_memory_checkpoint(books, pod_level_resource_managers=False)
        )
        answer = dp.ContainerAllocateResponse(envs={"GPUS": "seen"})
        listed = DeviceCheckpoint(
            entries=tuple(
                DeviceEntry(
                    pod_uid=PodUid(uid),
                    container="c",
                    resource=GPU,
                    ids_by_node={0: (DeviceId(device),)},
                    allocate_response=answer.SerializeToString(),
                )
                for uid, device in (devices or {}).items()
            ),
            registered={GPU: (DeviceId("g0"),)},
        )
        (self.root / "device-plugins" / "kubelet_internal_checkpoint").write_text(
            write_device_checkpoint(listed)
        )

    def run(self, *arguments: str, stdin: str | None = None) -> tuple[int, dict[str, Any], str]:
        """The command's exit code, its answer and what it complained about."""
        command = ["-o", "json", "import", "--kubelet-root", str(self.root)]
        command += ["--config", str(self.config), *arguments]
        result = CliRunner().invoke(cli, command, input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        answer = json.loads(result.stdout) if result.exit_code == 0 else {}
        return result.exit_code, answer, result.stderr


@pytest.fixture
def host(tmp_path: Path) -> Host:
    found = Host(tmp_path)
    found.configure()
    return found


def pod_list(*names: str) -> str:
    items = []
    for name in names:
        one = pod(name)
        resources = {"cpu": "2", "memory": "1Gi", GPU: "1"}
        items.append(
            {
                "metadata": {"name": name, "namespace": "default", "uid": one.metadata.uid},
                "spec": {
                    "containers": [
                        {"name": "c", "resources": {"limits": resources, "requests": resources}}
                    ]
                },
            }
        )
    return json.dumps({"apiVersion": "v1", "kind": "PodList", "items": items})


async def node_of(host: Host) -> tuple[Node, ad_grpc.AdmissionAsyncStub]:
    node = await Node.open(host.settings())
    await node.serving()
    return node, ad_grpc.AdmissionStub(node.channel(Service.ADMISSION))


async def states(node: Node) -> list[hp.GetStateResponse]:
    return [
        await hp_grpc.HintProviderStub(node.channel(service)).GetState(hp.GetStateRequest())
        for service in (Service.CPU, Service.MEMORY, Service.DEVICE)
    ]


async def test_a_pod_that_waits_for_a_resize_is_recorded_as_it_was_allocated(host: Host) -> None:
    """ALLOC-6: the list says what the pod wants, the kubelet's file what it has."""
    host.kubelet({"uid-a": "3,11"}, {"uid-a": GIB}, {"uid-a": "g1"})
    amounts = {name: Quantity.parse(n) for name, n in (("cpu", "2"), ("memory", "1Gi"), (GPU, "1"))}
    entry = AllocatedResources(requests=amounts, limits=amounts)
    allocated = AllocationCheckpoint(pods={PodUid("uid-a"): PodAllocation(containers={"c": entry})})
    path = host.root / "allocated_pods_state"
    path.write_text(write_allocation_checkpoint(allocated))
    wanted = pod_list("a", "b").replace('"cpu": "2"', '"cpu": "4"')

    _, answer, _ = await asyncio.to_thread(host.run, "--pods", "-", stdin=wanted)
    node, admission = await node_of(host)
    listing = await admission.ListAdmissions(ad.ListAdmissionsRequest())
    await node.close()

    note = "recorded with the resources that the kubelet allocated; a resize is pending"
    assert f"pod uid-a: {note}" in answer["notes"]
    assert not any(f"pod uid-b: {note}" in line for line in answer["notes"])
    recorded = {record.pod_uid: record for record in listing.admissions}
    requests = [recorded[uid].resources.containers[0].amounts.requests for uid in recorded]
    assert [of["cpu"] for of in requests] == ["2", "4"]
    assert list(recorded["uid-a"].problems) == []


def test_allocated_resources_that_cannot_be_read_are_left_out(host: Host) -> None:
    host.kubelet({"uid-a": "3,11"})
    path = host.root / "allocated_pods_state"
    path.write_text('{"data":"{}","checksum":1}')

    code, answer, _ = host.run("--pods", "-", stdin=pod_list("a"))

    assert code == 0
    assert f"allocated resources: {path}: checkpoint is corrupted" in answer["leftOut"]
    assert "record: pod default/a (uid-a)" in answer["imported"]


def test_with_the_pods_everything_is_recorded(host: Host) -> None:
    host.kubelet({"uid-a": "3,11"}, {"uid-a": GIB}, {"uid-a": "g1"})

    code, answer, _ = host.run("--pods", "-", stdin=pod_list("a"))

    assert code == 0
    assert answer == {
        "imported": [
            "cpu: pod uid-a, container c",
            "memory: pod uid-a, container c",
            "device: pod uid-a, container c",
            "record: pod default/a (uid-a)",
        ],
        "leftOut": [],
        "notes": [],
    }


async def test_an_imported_pod_is_admitted_with_what_it_had(host: Host) -> None:
    host.kubelet({"uid-a": "3,11"}, {"uid-a": GIB}, {"uid-a": "g1"})
    (host.directory / "pods.json").write_text(pod_list("a"))

    await asyncio.to_thread(host.run, "--pods", str(host.directory / "pods.json"))
    node, admission = await node_of(host)
    again = await admission.Admit(ad.AdmitRequest(pod=pod("a")))
    other = await admission.Admit(ad.AdmitRequest(pod=pod("b")))
    listing = await admission.ListAdmissions(ad.ListAdmissionsRequest())
    faults = faults_of(listing, await states(node))
    await node.close()

    allocation = again.allocations[0]
    assert again.already_admitted
    assert list(again.warnings) == []
    assert allocation.cpus == "3,11"
    assert list(allocation.devices[0].ids) == ["g1"]
    assert dict(allocation.devices[0].edits.envs) == {"GPUS": "seen"}
    assert other.allocations[0].cpus == "1,9"
    assert list(other.allocations[0].devices[0].ids) == ["g0"]
    assert faults == []


async def test_without_the_pods_nothing_is_given_away(host: Host) -> None:

    host.kubelet({"uid-a": "1,9"}, {"uid-a": GIB}, {"uid-a": "g0"})
    _, answer, _ = await asyncio.to_thread(host.run)
    node, admission = await node_of(host)
    other = await admission.Admit(ad.AdmitRequest(pod=pod("b")))
    again = await admission.Admit(ad.AdmitRequest(pod=pod("a")))
    await node.close()

    assert answer["notes"] == [
        "pod uid-a: not among the pods given; what it holds is kept until an agent says what it is"
    ]
    assert other.allocations[0].cpus == "2,10"
    assert again.already_admitted
    assert again.allocations[0].cpus == "1,9"


def test_what_does_not_fit_is_left_out_by_name(host: Host) -> None:
    host.kubelet(
        {"uid-a": "3,11", "uid-b": "0,8"},
        {"uid-a": GIB, "uid-b": 90 * GIB},
        {"uid-a": "g1", "uid-b": "g1"},
    )

    _, answer, _ = host.run()

    assert answer["leftOut"] == [
        'cpu: pod uid-b, container c: CPUs "0,8": "0,8" reserved now',
        (
            f"memory: pod uid-b, container c: {90 * GIB} bytes of memory: {90 * GIB} bytes of "
            f"memory on NUMA nodes 0 are needed and {14 * GIB} are free"
        ),
        f"device: pod uid-b, container c: {GPU} g1: g1 held by another pod",
    ]


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        pytest.param(
            lambda text: text.replace('"3,11"', '"4,12"'),
            "json: an object where a string belongs",
            id="checksum",
        ),
        pytest.param(
            lambda text: text.replace('"static"', '"none"'),
            "json: an object where a string belongs",
            id="policy-changed-by-hand",
        ),
        pytest.param(lambda _: None, "there is no such file", id="missing"),
    ],
)
def test_a_file_that_cannot_be_trusted_is_left_out(host: Host, spoil: Any, why: str) -> None:
    host.kubelet({"uid-a": "3,11"}, {"uid-a": GIB})
    path = host.root / "cpu_manager_state"
    spoiled = spoil(path.read_text())
    if spoiled is None:
        path.unlink()
    else:
        path.write_text(spoiled)

    _, answer, _ = host.run()

    assert answer["leftOut"] == [f"cpu: {path}: {why}"]
    assert answer["imported"] == ["memory: pod uid-a, container c"]


def test_another_policy_is_no_ground_for_taking_over(host: Host) -> None:
    host.configure(cpuManagerPolicy="none")
    host.kubelet({"uid-a": "3,11"})

    _, answer, _ = host.run()

    assert answer["leftOut"] == [
        (
            f'cpu: {host.root / "cpu_manager_state"}: configured policy "none" differs from state '
            'checkpoint policy "static"'
        )
    ]


def test_a_state_that_holds_pods_is_not_overwritten(host: Host) -> None:
    host.kubelet({"uid-a": "3,11"})
    host.run()

    code, _, complaint = host.run()
    replaced, answer, _ = host.run("--replace")

    assert code == 1
    assert "holds 1 pods already; --replace sets it aside first" in complaint
    assert replaced == 0
    kept = host.directory / "state" / "numalign.db.replaced-1"
    assert answer["notes"][0] == f"the state before is kept as {kept}"
    assert kept.exists()


async def test_a_running_service_is_in_the_way(host: Host) -> None:

    host.kubelet({"uid-a": "3,11"})
    node = await Node.open(host.settings())
    code, _, complaint = await asyncio.to_thread(host.run, "--replace")
    await node.close()

    assert code == 1
    assert "is held by another process" in complaint


def test_each_service_can_have_a_file_of_its_own(host: Host) -> None:
    host.kubelet({"uid-a": "3,11"}, {"uid-a": GIB}, {"uid-a": "g1"})

    code, answer, _ = host.run("--processes", "--pods", "-", stdin=pod_list("a"))

    assert code == 0
    assert len(answer["imported"]) == 4
    assert {path.name for path in (host.directory / "state").glob("*.db")} == {
        "topology.db",
        "cpu.db",
        "memory.db",
        "device.db",
    }


def test_ended_pods_and_mirrors_of_static_ones(host: Host) -> None:
    host.kubelet({"real": "3,11"})
    pods = json.loads(pod_list("done", "mirror"))
    pods["items"][0]["status"] = {"phase": "Succeeded"}
    pods["items"][1]["metadata"]["annotations"] = {
        "kubernetes.io/config.mirror": "real",
        "kubernetes.io/config.hash": "real",
    }

    _, answer, _ = host.run("--pods", "-", stdin=json.dumps(pods))

    assert answer["imported"] == ["cpu: pod real, container c", "record: pod default/mirror (real)"]
    assert answer["notes"][0] == "pod default/done: has ended (Succeeded)"


def test_state_of_services_that_run_the_other_way_is_refused(host: Host) -> None:
    host.kubelet({"uid-a": "3,11"})
    host.run("--processes")

    code, _, complaint = host.run()

    assert code == 1
    assert "that of services in processes of their own" in complaint


def test_a_directory_without_any_state_file_is_refused(host: Host) -> None:
    host.root.mkdir(exist_ok=True)

    code, _, complaint = host.run()

    assert code == 1
    assert f"{host.root} holds no state file of a kubelet" in complaint
    assert not (host.directory / "state" / "numalign.db").exists()
