"""What zones say fits is admitted, and what they say fits nowhere is refused.

Nodes in this process, with pods of one container that come and go at random; the seed names a run.
"""

from __future__ import annotations

import os
import random
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.node_document import GPU, document, machine
from tests.integration.topology_match import fits

from numalign.config.loader import load_settings
from numalign.config.machine_source import read_machine
from numalign.config.settings import Service
from numalign.kube.pod_json import pod_from_json
from numalign.model.machine import Machine
from numalign.process.node import Node
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import types_pb2 as pb
from numalign.v1.admission_pb2_grpc import AdmissionStub
from numalign.v1.topology_pb2_grpc import TopologyManagerStub
from numalign_agent.node.settings import Counted
from numalign_agent.node.topology.objects import Policy, content

STEPS = 60
FIXTURES = Path(__file__).parents[1] / "fixtures" / "sysfs"
SHAPES = (
    "1s-nps4-smt",
    "2s-snc4-8numa",
    "36numa",
    "asymmetric-distance",
    "cpuless-node",
    "memoryless-node",
    "offline-isolated",
    "sparse-nodes",
)


def with_pages() -> dict[str, Any]:
    """The machine, with huge pages on one node more than on the other."""
    made = machine()
    for node in made["numa_nodes"]:
        node["hugepages"] = [{"page_size_kib": 2048, "count": 64 if node["id"] else 512}]
    return made


CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "container-scope": {},
    "pod-scope": {"topologyManagerScope": "pod"},
    "whole-cores": {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}},
    "memory-not-managed": {"memoryManagerPolicy": "None", "reservedMemory": None},
    "cpus-not-managed": {"cpuManagerPolicy": "none"},
}


def pod(name: str, amounts: dict[str, str]) -> dict[str, Any]:
    resources = {"requests": amounts, "limits": amounts}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"containers": [{"name": "c", "resources": resources}]},
    }


@dataclass(frozen=True)
class Sizes:
    """What pods ask for: a multiple of `step` CPUs, up to `cpus`; one of these memories, in Mi."""

    step: int = 1
    cpus: int = 9
    memories: tuple[int, ...] = (64, 1024, 3000, 8192, 15000, 17000)


def any_pod(chance: random.Random, name: str, sizes: Sizes) -> dict[str, Any]:
    amounts = {
        "cpu": str(sizes.step * chance.randint(1, sizes.cpus // sizes.step)),
        "memory": f"{chance.choice(sizes.memories)}Mi",
    }
    if chance.random() < 0.4:
        amounts[GPU] = str(chance.randint(1, 3))
    if chance.random() < 0.3:
        amounts["hugepages-2Mi"] = f"{chance.choice([2, 64, 128, 700])}Mi"
    return pod(name, amounts)


class Services:
    """The services of one node, and the topology that they would have exported."""

    def __init__(self, node: Node, machine: Machine) -> None:
        self.admission = AdmissionStub(node.channel(Service.ADMISSION))
        self._topology = TopologyManagerStub(node.channel(Service.TOPOLOGY))
        self._machine = machine

    async def exported(self) -> dict[str, Any]:
        told = await self.admission.GetNodeResources(ad.GetNodeResourcesRequest())
        listing = await self.admission.ListAdmissions(ad.ListAdmissionsRequest())
        answer = await self._topology.GetPolicy(tm.GetPolicyRequest())
        policy = Policy(policy=answer.policy, scope=answer.scope, options=dict(answer.options))
        return content(
            self._machine,
            policy,
            told.resources,
            tuple(listing.admissions),
            Counted(),
        )

    async def admit(self, document: dict[str, Any], *, dry_run: bool) -> ad.AdmitResponse:
        request = ad.AdmitRequest(pod=pod_from_json(document), dry_run=dry_run)
        answer: ad.AdmitResponse = await self.admission.Admit(request)
        return answer


async def opened(directory: Path, keys: dict[str, Any]) -> tuple[Node, Services]:
    whole = {**document(directory, machine=with_pages()), **keys}
    path = directory / "config.yaml"
    path.write_text(yaml.safe_dump({key: value for key, value in whole.items() if value}))
    settings = load_settings(path, os.environ, is_root=False)
    node = await Node.open(settings)
    await node.serving()
    return node, Services(node, read_machine(settings.machine).machine)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
async def test_zones_and_admission_agree(tmp_path: Path, configuration: str, seed: int) -> None:
    chance = random.Random(f"{configuration}-{seed}")
    # Of a core with two threads, one alone is never given out where cores are whole.
    sizes = Sizes(step=2 if configuration == "whole-cores" else 1)
    await agree(tmp_path, CONFIGURATIONS[configuration], chance, sizes)


@pytest.mark.parametrize("shape", SHAPES)
async def test_they_agree_on_machines_of_every_shape(tmp_path: Path, shape: str) -> None:
    with tarfile.open(FIXTURES / f"{shape}.tar.gz") as tree:
        tree.extractall(tmp_path / "root", filter="data")
    whole = document(
        tmp_path,
        machine={"root": str(tmp_path / "root")},
        devices=[],
        nodeAllocatableReservation={"memory": "16Mi"},
    )
    settings = {
        "reservedSystemCPUs": "0",
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": "16Mi"}}],
        "topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "64"},
        "numalign": whole["numalign"],
    }
    await agree(tmp_path, settings, random.Random(shape), Sizes(1, 5, (1, 20, 100, 200, 300, 2000)))


async def agree(
    directory: Path,
    keys: dict[str, Any],
    chance: random.Random,
    sizes: Sizes,
) -> None:
    """Have pods come and go at random; at each step ask the zones and Admission."""
    node, services = await opened(directory, keys)
    live: list[str] = []
    verdicts = set()
    try:
        for number in range(STEPS):
            asked = any_pod(chance, f"p{number}", sizes)
            topology = await services.exported()
            said = fits(topology, asked)
            answer = await services.admit(asked, dry_run=True)
            verdicts.add(said)

            assert said == (answer.verdict == pb.VERDICT_ADMITTED), (asked, topology, answer)
            if said and chance.random() < 0.6:
                await services.admit(asked, dry_run=False)
                live.append(asked["metadata"]["uid"])
            elif live and chance.random() < 0.5:
                gone = live.pop(chance.randrange(len(live)))
                await services.admission.Release(ad.ReleaseRequest(pod_uid=gone))
    finally:
        await node.close()
    assert verdicts == {True, False}


async def test_other_policies_refuse_nobody_by_their_zones(tmp_path: Path) -> None:
    node, services = await opened(tmp_path, {"topologyManagerPolicy": "best-effort"})
    try:
        over_two_nodes = pod("wide", {"cpu": "10", "memory": "1Gi"})
        said = fits(await services.exported(), over_two_nodes)
        answer = await services.admit(over_two_nodes, dry_run=True)
    finally:
        await node.close()

    assert said
    assert answer.verdict == pb.VERDICT_ADMITTED


async def test_a_device_that_became_ill_is_not_available(tmp_path: Path) -> None:
    ill = {
        "devices": [
            {
                "resource": GPU,
                "devices": [
                    {"id": "g0", "numa_nodes": [0], "healthy": False},
                    {"id": "g1", "numa_nodes": [1]},
                ],
            }
        ]
    }
    keys = {"numalign": {**document(tmp_path, machine=with_pages())["numalign"], **ill}}
    node, services = await opened(tmp_path, keys)
    try:
        zones = (await services.exported())["zones"]
    finally:
        await node.close()

    assert [
        (each["capacity"], each["allocatable"], each["available"])
        for zone in zones
        for each in zone["resources"]
        if each["name"] == GPU
    ] == [("1", "0", "0"), ("1", "1", "1")]
