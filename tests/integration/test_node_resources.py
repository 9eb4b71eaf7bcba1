"""What a node tells of its free resources: uc-34 and uc-39 of user-cases.jsonl, and the stream."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from grpc import aio
from tests.integration.served_node import GPU, container, document, pod

from numalign.config.loader import load_settings
from numalign.config.settings import Service
from numalign.process.node import Node
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import node_resources_pb2 as nr
from numalign.v1 import types_pb2 as pb
from numalign.v1.admission_pb2_grpc import AdmissionStub
from numalign_client import AsyncAdmissionClient


@asynccontextmanager
async def opened(directory: Path, **keys: Any) -> AsyncIterator[Any]:
    """The Admission stub of a node in this process, with these keys in its configuration."""
    async with opened_channel(directory, **keys) as channel:
        yield AdmissionStub(channel)


@asynccontextmanager
async def opened_channel(directory: Path, **keys: Any) -> AsyncIterator[aio.Channel]:
    """The same, as a channel."""
    whole = document(directory, keys.pop("numalign", {}))
    whole.update(keys)
    config = directory / "config.yaml"
    config.write_text(yaml.safe_dump({key: value for key, value in whole.items() if value}))
    node = await Node.open(load_settings(config, os.environ, False))
    try:
        await node.serving()
        yield node.channel(Service.ADMISSION)
    finally:
        await node.close()


def cpus_only(nodes: Mapping[int, range]) -> dict[str, Any]:
    return {
        "numa_nodes": [
            {
                "id": node,
                "memory_bytes": 16 << 30,
                "cores": [{"id": c, "socket_id": node, "threads": [c]} for c in cpus],
            }
            for node, cpus in nodes.items()
        ]
    }


async def resources(admission: Any) -> nr.NodeResources:
    response = await admission.GetNodeResources(ad.GetNodeResourcesRequest())
    found: nr.NodeResources = response.resources
    return found


def unnumbered(picture: nr.NodeResources) -> nr.NodeResources:
    """Without the revision, which also grows when the shared CPUs are told."""
    copy = nr.NodeResources()
    copy.CopyFrom(picture)
    copy.ClearField("revision")
    return copy


async def admit(admission: Any, which: Any) -> Any:
    return await admission.Admit(ad.AdmitRequest(pod=which))


async def test_uc_34_the_largest_single_node_shape_is_told(tmp_path: Path) -> None:
    async with opened(
        tmp_path,
        topologyManagerPolicy="single-numa-node",
        memoryManagerPolicy="None",
        reservedMemory=None,
        reservedSystemCPUs="0",
        numalign={"machine": cpus_only({0: range(15), 1: range(15, 29)})},
    ) as admission:
        for name in ("a", "b"):
            filler = pod(name, {"containers": [container("c", cpu="8", memory="1Gi")]})
            assert (await admit(admission, filler)).verdict == pb.VERDICT_ADMITTED
        replica = pod("replica", {"containers": [container("c", cpu="8", memory="1Gi")]})

        before = await resources(admission)
        refused = await admit(admission, replica)
        after = await resources(admission)

    assert refused.verdict == pb.VERDICT_REJECTED
    assert [n.largest_shape.cpus for n in before.numa_nodes] == [6, 6]
    assert before.cpus.free == 12
    assert unnumbered(after) == unnumbered(before)


async def test_uc_39_shared_and_free_are_told_apart(tmp_path: Path) -> None:
    async with opened(
        tmp_path,
        memoryManagerPolicy="None",
        reservedMemory=None,
        reservedSystemCPUs="0",
        numalign={"machine": cpus_only({0: range(8)}), "devices": []},
    ) as admission:
        g = pod("g", {"containers": [container("c", cpu="2", memory="1Gi")]})
        f = pod("f", {"containers": [container("c", cpu="1500m", memory="1Gi")]})
        for which in (g, f):
            assert (await admit(admission, which)).verdict == pb.VERDICT_ADMITTED

        cpus = (await resources(admission)).cpus

    assert (cpus.all, cpus.reserved, cpus.exclusive, cpus.shared) == ("0-7", "0", "1-2", "3-7")
    assert cpus.shared_pool == "0,3-7"
    assert cpus.shared_requested_millicores == 1500
    assert cpus.free == 3


async def test_every_kind_of_resource_is_told_by_numa_node(tmp_path: Path) -> None:
    async with opened(tmp_path) as admission:
        wants = pod("p", {"containers": [container("c", cpu="3", memory="2Gi", gpu="1")]})
        answer = await admit(admission, wants)
        picture = await resources(admission)
        await admission.Release(ad.ReleaseRequest(pod_uid="uid-p"))
        empty = await resources(admission)

    (given,) = answer.allocations
    first, second = picture.numa_nodes
    assert (first.cpus.all, second.cpus.all) == ("0-3,8-11", "4-7,12-15")
    assert first.cpus.exclusive == given.cpus
    assert first.largest_shape.cpus == 8 - 2 - 3
    assert second.largest_shape.cpus == 8
    assert first.memory[0].allocatable - first.memory[0].free == 2 << 30
    assert second.largest_shape.memory["memory"] == 16 << 30
    (device,) = given.devices[0].ids
    gpus = {n.numa_node: set(n.devices[0].free) for n in picture.numa_nodes}
    assert device not in gpus[0] | gpus[1]
    assert [d.resource for d in picture.devices] == ["example.com/fpga", GPU]
    assert picture.revision < empty.revision
    assert empty.cpus.exclusive == ""
    assert sum(n.largest_shape.cpus for n in empty.numa_nodes) == 14


async def test_changes_are_streamed(tmp_path: Path) -> None:
    async with opened(tmp_path) as admission:
        stream = admission.WatchNodeResources(ad.WatchNodeResourcesRequest())
        pictures = aiter(stream)

        async def until(exclusive: int) -> nr.NodeResources:
            async with asyncio.timeout(60):
                while True:
                    told: nr.NodeResources = (await anext(pictures)).resources
                    if len(told.cpus.exclusive.split(",")) == exclusive and told.cpus.exclusive:
                        return told
                    if exclusive == 0 and not told.cpus.exclusive:
                        return told

        await until(0)
        await admit(admission, pod("p", {"containers": [container("c", cpu="1", memory="1Gi")]}))
        held = await until(1)
        await admission.Release(ad.ReleaseRequest(pod_uid="uid-p"))
        free = await until(0)
        stream.cancel()

    assert held.revision < free.revision


async def test_the_client_watches_the_same(tmp_path: Path) -> None:
    async with opened_channel(tmp_path) as channel:
        admission = AdmissionStub(channel)
        client = AsyncAdmissionClient(channel=channel)
        pictures = client.watch_node_resources()
        which = pod("p", {"containers": [container("c", cpu="1", memory="1Gi")]})
        async with asyncio.timeout(60), aclosing(pictures):
            first = await anext(pictures)
            await admit(admission, which)
            told = first
            while not told.cpus.exclusive:
                told = await anext(pictures)

            assert not first.cpus.exclusive
            assert unnumbered(told) == unnumbered(await client.get_node_resources())
