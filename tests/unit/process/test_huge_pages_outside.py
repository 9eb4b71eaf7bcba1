"""Huge pages that somebody uses without a booking: told by the memory service's status."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from grpc import StatusCode
from grpc.aio import AioRpcError

from numalign.config.loader import load_settings
from numalign.config.settings import Service, Settings
from numalign.kube.pod_json import pod_from_json
from numalign.process.node import Node
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import control_pb2 as ct
from numalign.v1 import types_pb2 as pb
from numalign.v1.admission_pb2_grpc import AdmissionStub
from numalign.v1.control_pb2_grpc import ControlStub

TREE = Path(__file__).parents[2] / "fixtures" / "sysfs" / "2s-hugepages-1g.tar.gz"
POOL = "sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages"


def extracted(directory: Path) -> Path:
    """The root of a machine whose node 1 has 256 pages of 2Mi, and node 0 has 128."""
    root = directory / "root"
    with tarfile.open(TREE) as archive:
        archive.extractall(root, filter="fully_trusted")
    (root / POOL).chmod(0o644)
    return root


def configuration(root: Path, **numalign: object) -> str:
    return json.dumps(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "memoryManagerPolicy": "Static",
            "evictionHard": {"memory.available": "100Mi"},
            "reservedMemory": [{"numaNode": 0, "limits": {"memory": "100Mi"}}],
            "numalign": {"machine": {"root": str(root)}, "secondOwner": "tolerate", **numalign},
        }
    )


async def test_status_tells_while_it_is_so(tmp_path: Path) -> None:
    root = extracted(tmp_path)
    free = root / POOL
    config = tmp_path / "config.json"
    config.write_text(configuration(root), encoding="utf-8")
    places = {"runtimeDirectory": str(tmp_path / "r"), "stateDirectory": str(tmp_path / "s")}
    node = await Node.open(load_settings(config, {}, is_root=False, overrides=places))
    try:
        stub = ControlStub(node.channel(Service.MEMORY))

        async def told() -> list[str]:
            answer = await stub.GetStatus(ct.GetStatusRequest())
            return [line for line in answer.reports if "in the kernel" in line]

        at_first = await told()
        free.write_text("56\n")
        in_use = await told()
        free.write_text("256\n")
        after = await told()
    finally:
        await node.close()

    assert at_first == after == []
    (line,) = in_use
    assert line.startswith(
        "hugepages-2Mi on NUMA node 1: 112Mi free in the kernel, 512Mi in the books: at least 400Mi"
    )


async def test_a_switch_that_looks_at_them_is_taken_over_while_the_node_runs(
    tmp_path: Path,
) -> None:
    root = extracted(tmp_path)
    (root / POOL).write_text("56\n")
    config = tmp_path / "config.json"
    places = {"runtimeDirectory": str(tmp_path / "r"), "stateDirectory": str(tmp_path / "s")}
    amounts = {"cpu": "1", "memory": "64Mi", "hugepages-2Mi": "512Mi"}
    container = {"name": "c", "resources": {"requests": amounts, "limits": amounts}}
    request = ad.AdmitRequest(
        pod=pod_from_json(
            {
                "metadata": {"uid": "p", "name": "p", "namespace": "default"},
                "spec": {"containers": [container]},
            }
        )
    )

    def read() -> Settings:
        return load_settings(config, {}, is_root=False, overrides=places)

    config.write_text(configuration(root), encoding="utf-8")
    node = await Node.open(read(), read)
    try:
        control = ControlStub(node.channel(Service.MEMORY))
        admission = AdmissionStub(node.channel(Service.ADMISSION))
        before = await admission.Admit(request)
        await admission.Release(ad.ReleaseRequest(pod_uid="p"))
        config.write_text(configuration(root, placement={"kernelHugePages": "defer"}))
        reloaded = await control.Reload(ct.ReloadRequest())
        waiting = await admission.Admit(request)
        (root / POOL).write_text("256\n")
        admitted = await admission.Admit(request)
    finally:
        await node.close()

    assert before.verdict == pb.VERDICT_ADMITTED
    assert list(reloaded.applied) == ["numalign.placement"]
    assert list(reloaded.needs_restart) == []
    assert (waiting.verdict, waiting.reason) == (pb.VERDICT_DEFERRED, "HugePagesInUse")
    assert waiting.retry_after.seconds == 5
    assert admitted.verdict == pb.VERDICT_ADMITTED


async def test_no_decision_is_made_where_the_kernel_cannot_be_read(tmp_path: Path) -> None:
    root = extracted(tmp_path)
    config = tmp_path / "config.json"
    places = {"runtimeDirectory": str(tmp_path / "r"), "stateDirectory": str(tmp_path / "s")}
    config.write_text(configuration(root, placement={"kernelHugePages": "refuse"}))
    amounts = {"cpu": "1", "memory": "64Mi", "hugepages-2Mi": "512Mi"}
    container = {"name": "c", "resources": {"requests": amounts, "limits": amounts}}
    metadata = {"uid": "p", "name": "p", "namespace": "default"}
    which = pod_from_json({"metadata": metadata, "spec": {"containers": [container]}})
    node = await Node.open(load_settings(config, {}, is_root=False, overrides=places))
    try:
        admission = AdmissionStub(node.channel(Service.ADMISSION))
        (root / POOL).write_text("many\n")
        with pytest.raises(AioRpcError) as refused:
            await admission.Admit(ad.AdmitRequest(pod=which))
    finally:
        await node.close()

    assert refused.value.code() is StatusCode.UNAVAILABLE
    assert "free huge pages cannot be read" in (refused.value.details() or "")
