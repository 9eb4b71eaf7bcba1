"""NUMA nodes of claimed devices as hints: CPUs follow them where the switch says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from tests.integration.node_document import document

from numalign.config.loader import load_settings
from numalign.config.settings import Service
from numalign.kube.core.v1.core_pb2 import Pod
from numalign.kube.pod_json import pod_from_json
from numalign.process.node import Node
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import claims_pb2 as cl
from numalign.v1 import types_pb2 as pb

AMOUNTS = {"cpu": "2", "memory": "64Mi"}
POD = pod_from_json(
    {
        "metadata": {"name": "a", "namespace": "shop", "uid": "a"},
        "spec": {
            "resourceClaims": [{"name": "k", "resourceClaimName": "c1"}],
            "containers": [
                {
                    "name": "c",
                    "resources": {
                        "requests": AMOUNTS,
                        "limits": AMOUNTS,
                        "claims": [{"name": "k"}],
                    },
                }
            ],
        },
    }
)


def sits_on(*nodes: int) -> cl.FetchedClaim:
    devices = [
        cl.AllocatedDevice(request="r", driver="d", pool="p", device=f"x{n}", numa_nodes=[n])
        for n in nodes
    ]
    return cl.FetchedClaim(
        name="c1",
        claim=cl.ResourceClaim(
            namespace="shop", name="c1", uid="u1", allocation=cl.ClaimResult(devices=devices)
        ),
    )


async def admitted(directory: Path, hints: bool, *nodes: int) -> ad.AdmitResponse:
    section = {"enabled": True, "pluginsRegistry": str(directory / "pr"), "numaHints": hints}
    path = directory / "config.yaml"
    path.write_text(yaml.safe_dump(document(directory, dra=section)))
    node = await Node.open(load_settings(path, os.environ, is_root=False))
    try:
        stub = ad_grpc.AdmissionStub(node.channel(Service.ADMISSION))
        request = ad.AdmitRequest(pod=POD, claims=[sits_on(*nodes)], explain=pb.EXPLAIN_LEVEL_FULL)
        return await stub.Admit(request)
    finally:
        await node.close()


@pytest.mark.parametrize(
    ("hints", "node"),
    [pytest.param(True, 1, id="on"), pytest.param(False, 0, id="off, as in a kubelet")],
)
async def test_cpus_go_where_the_claimed_device_is(tmp_path: Path, hints: bool, node: int) -> None:
    answer = await admitted(tmp_path, hints, 1)

    assert answer.verdict == pb.VERDICT_ADMITTED, answer
    assert answer.allocations[0].affinity.mask == 1 << node
    asked = {p.provider for merge in answer.explanation.merges for p in merge.providers}
    assert ("dra" in asked) is hints


async def test_devices_on_two_nodes_cannot_be_had_from_one(tmp_path: Path) -> None:
    answer = await admitted(tmp_path, True, 0, 1)

    assert answer.verdict == pb.VERDICT_REJECTED
    assert answer.reason == "TopologyAffinityError"
    assert "claim:c1" in answer.explanation.summary


async def test_a_resize_goes_by_them_as_well(tmp_path: Path) -> None:
    section = {"enabled": True, "pluginsRegistry": str(tmp_path / "pr"), "numaHints": True}
    keys = {
        "topologyManagerPolicy": "best-effort",
        "featureGates": {"InPlacePodVerticalScalingExclusiveCPUs": True},
    }
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(document(tmp_path, dra=section) | keys))
    grown = Pod()
    grown.CopyFrom(POD)
    for amounts in (
        grown.spec.containers[0].resources.limits,
        grown.spec.containers[0].resources.requests,
    ):
        amounts["cpu"].string = "4"
    node = await Node.open(load_settings(path, os.environ, is_root=False))
    try:
        stub = ad_grpc.AdmissionStub(node.channel(Service.ADMISSION))
        await stub.Admit(ad.AdmitRequest(pod=POD, claims=[sits_on(1)]))
        answer = await stub.Admit(
            ad.AdmitRequest(
                pod=grown,
                claims=[sits_on(1)],
                operation=pb.OPERATION_RESIZE,
                explain=pb.EXPLAIN_LEVEL_FULL,
            )
        )
    finally:
        await node.close()

    assert answer.verdict == pb.VERDICT_ADMITTED, answer
    assert answer.allocations[0].affinity.mask == 1 << 1
    assert "dra" in {p.provider for merge in answer.explanation.merges for p in merge.providers}
