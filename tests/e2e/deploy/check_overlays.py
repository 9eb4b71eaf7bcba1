"""The other overlays, run as they are written: `make e2e-deploy`.

Each once, from its start to its end, with what it is there for in between. What they share with
overlays/nri is tried with that one, in check_deploy.py.
"""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from grpc import aio
from tests.deploy.manifests import KUSTOMIZE
from tests.e2e.containerd import Containerd
from tests.e2e.deploy.as_written import (
    assert_all_end_when_told,
    assert_as_written,
    assert_probes_pass,
)
from tests.e2e.deploy.deployment import NODE, Deployment, deployed, host_of
from tests.e2e.node import LONG
from tests.integration.fake_api.server import CUSTOM
from tests.integration.fake_kubelet import FakeKubelet, device, holding

from numalign_client import AdmissionError, AsyncAdmissionClient

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(1800),
]

SHARED, EXCLUSIVE = "0", "1"
FILE, GPU = "example.com/file", "example.com/gpu"
_CONFIG = ("--config", "/etc/numalign/config.yaml")

OWN = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: numalign-system
resources:
- {overlay}
configMapGenerator:
- name: numalign-config
  behavior: merge
  files:
  - config.yaml
"""
"""A configuration of one's own, as docs/how-to/install.md has it."""

TWO_NODES = {
    "numa_nodes": [
        {
            "id": 0,
            "memory_bytes": 4 << 30,
            "distances": [10, 20],
            "cores": [{"id": cpu, "socket_id": 0, "threads": [cpu]} for cpu in (0, 1)],
        },
        {"id": 1, "memory_bytes": 4 << 30, "distances": [20, 10]},
    ]
}
"""Two CPUs on NUMA node 0, and memory without CPUs on node 1."""


@asynccontextmanager
async def tried(kustomization: str, containerd: Containerd) -> AsyncIterator[Deployment]:
    """It runs inside of the block, and is what its manifest says, from its start to its end."""
    async with deployed(kustomization, containerd) as deployment:
        await assert_as_written(deployment.kubelet)
        await assert_probes_pass(deployment.kubelet)
        await deployment.until_taint_is_gone()
        yield deployment
        await assert_all_end_when_told(deployment.kubelet)


async def explained(deployment: Deployment, container: str, pod: str) -> Any:
    """What a container says of the decision on a pod."""
    command = ("numalign", "explain", pod, *_CONFIG, "-o", "json")
    return json.loads(await deployment.kubelet.run_inside(container, *command))


async def test_all_in_one_places_pods_and_explains(containerd: Containerd) -> None:
    async with tried("overlays/all-in-one", containerd) as deployment:
        pinned = await deployment.run_whole_pod("pinned", cpu=1)
        await deployment.until_on(pinned, EXCLUSIVE)
        for name in ("services", "nri", "node"):
            await deployment.until_on(deployment.kubelet.containers[name], SHARED)
        with pytest.raises(aio.AioRpcError, match="UnexpectedAdmissionError: Allocate failed"):
            await deployment.run_pod("refused", cpu=1)
        admitted = await explained(deployment, "services", "default/pinned")
        refused = await explained(deployment, "services", "default/refused")

    assert admitted["verdict"] == "VERDICT_ADMITTED"
    assert (refused["verdict"], refused["reason"]) == (
        "VERDICT_REJECTED",
        "UnexpectedAdmissionError",
    )


async def test_a_device_plugin_registers_and_a_pod_gets_its_device(containerd: Containerd) -> None:
    """Also after the service that hosts it was started again: it registers once more."""
    async with tried("overlays/device-plugin-host", containerd) as deployment:
        null, files = deployment.directory / "null", deployment.directory / "files"
        os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        files.mkdir()
        for name in ("one", "two"):
            (files / name).write_text(f"node: {null}\nnuma_nodes: 0\n", encoding="utf-8")
        sockets = deployment.volumes.on_host("/var/lib/numalign-device-plugins")
        plugin = deployment.device_plugin(sockets, files)
        await plugin.start()
        try:
            await until_free(deployment, 2)
            first = await holder(deployment, "first", cpu=1)
            held = await inside(deployment, first)
            await deployment.until_on(first, EXCLUSIVE)
            await deployment.containerd.cri.stop(deployment.kubelet.containers["device"], 30)
            await deployment.kubelet.restart("device")
            await until_free(deployment, 1)
            second = await holder(deployment, "second", cpu=0)
            other = await inside(deployment, second)
            registered = plugin.said().count("registered")
        finally:
            await plugin.stop()

    assert registered == 2
    assert sorted((held["EXAMPLE_COM_FILE"], other["EXAMPLE_COM_FILE"])) == ["one", "two"]
    assert (held["null"], other["null"]) == ("", "")


async def test_a_pod_is_aligned_to_the_device_that_the_kubelet_gave_it(
    containerd: Containerd, tmp_path: Path
) -> None:
    """The machine is made up, so that there is a NUMA node where the pod does not fit."""
    devices = {name: device(GPU, name, node) for name, node in (("near", 0), ("far", 1))}
    with kubelet_on(containerd) as kubelet:
        kubelet.start()
        async with tried(own_observer(tmp_path), containerd) as deployment:
            kubelet.tell(devices.values(), [])
            with pytest.raises(aio.AioRpcError, match="KubeletDevicesNotKnown"):
                await deployment.run_pod("a", cpu=1, devices={GPU: "1"})
            kubelet.tell(
                devices.values(),
                [holding("a", app=[devices["far"]]), holding("b", app=[devices["near"]])],
            )
            uid = deployment.api.store.get("pods", "default", "a")["metadata"]["uid"]
            with pytest.raises(aio.AioRpcError, match="TopologyAffinityError"):
                await deployment.run_sandbox("a", uid, 1, attempt=1)
            container = await deployment.run_whole_pod("b", cpu=1, devices={GPU: "1"})
            await deployment.until_on(container, EXCLUSIVE)
            async with AsyncAdmissionClient(deployment.socket) as client:
                listed = await client.list_admissions(timeout=LONG)

    (allocation,) = next(each for each in listed.admissions if each.name == "b").allocations
    assert [id_ for each in allocation.devices for id_ in each.ids] == ["near"]
    assert allocation.cpus == EXCLUSIVE
    assert {node for block in allocation.memory for node in block.numa_nodes} == {0}


async def test_a_scheduler_sees_what_a_pod_has_taken(containerd: Containerd) -> None:
    async with tried("overlays/scheduler", containerd) as deployment:
        await deployment.until(lambda: cpus_told(deployment) == "1", "a CPU can be had")
        pinned = await deployment.run_whole_pod("pinned", cpu=1)
        await deployment.until(lambda: cpus_told(deployment) == "0", "none is left")
        await deployment.until_on(pinned, EXCLUSIVE)


def cpus_told(deployment: Deployment) -> str:
    """The CPUs that the NodeResourceTopology has available on the one NUMA node, if it is there."""
    found = deployment.api.store.objects.get(CUSTOM, {}).get(("", NODE))
    if found is None:
        return ""
    (zone,) = found["zones"]
    (cpus,) = (each["available"] for each in zone["resources"] if each["name"] == "cpu")
    return str(cpus)


@contextmanager
def kubelet_on(containerd: Containerd) -> Iterator[FakeKubelet]:
    """A stand-in for the kubelet's pod resources, where the node has it, with its rights."""
    directory = host_of(containerd) / "var/lib/kubelet/pod-resources"
    directory.mkdir(parents=True, mode=0o750)
    kubelet = FakeKubelet(directory)
    try:
        yield kubelet
    finally:
        kubelet.stop()


def own_observer(directory: Path) -> str:
    """The overlay with a configuration that refuses what cannot be aligned; where it is."""
    overlay = KUSTOMIZE / "overlays" / "observer"
    config = yaml.safe_load((overlay / "config.yaml").read_text(encoding="utf-8"))
    config |= {
        "topologyManagerPolicy": "single-numa-node",
        "memoryManagerPolicy": "Static",
        "evictionHard": {"memory.available": "100Mi"},
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": "100Mi"}}],
    }
    config["numalign"]["machine"] = TWO_NODES
    (directory / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    text = OWN.format(overlay=os.path.relpath(overlay, directory))
    (directory / "kustomization.yaml").write_text(text, encoding="utf-8")
    return str(directory)


async def until_free(deployment: Deployment, number: int) -> None:
    """Wait until so many devices of the plugin can be had, and everybody knows it."""
    free: list[str] = []
    try:
        async with AsyncAdmissionClient(deployment.socket) as client, asyncio.timeout(LONG):
            while len(free) != number:
                await asyncio.sleep(0.1)
                with suppress(AdmissionError):  # while the service that hosts it is away
                    told = await client.get_node_resources(timeout=LONG)
                    free = [id_ for each in told.devices for id_ in each.free]
    except TimeoutError:
        raise AssertionError(f"free are {free}\n{deployment.told()}") from None


async def holder(deployment: Deployment, name: str, *, cpu: int) -> str:
    """A pod with one device of the plugin; its container."""
    pod = await deployment.run_pod(name, cpu=cpu, devices={FILE: "1"})
    return await deployment.run_container(pod, cpu=cpu)


async def inside(deployment: Deployment, container: str) -> dict[str, str]:
    """What a container has of its device: its environment, and what can be read of the node."""
    run = deployment.containerd.cri.run_inside
    environment = await run(container, "cat", "/proc/1/environ")
    found = dict(each.split("=", 1) for each in environment.split("\0") if each)
    return {
        **found,
        "null": await run(container, "cat", str(deployment.directory / "null")),
    }
