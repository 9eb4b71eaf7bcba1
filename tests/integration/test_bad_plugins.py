"""Plugins with bad manners in processes of their own: what they and their pods are told.

Each is asked for devices beside the others. Whatever it does, nothing stays allocated, and pods
that do not ask for its resource are admitted.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.integration.plugin_world import ROOT, Agent, Place, devices_of, place, until
from tests.unit.process.observed_world import samples

from numalign.config.settings import Address, MetricsSettings, Service
from numalign.kube.core.v1.core_pb2 import Pod
from numalign.kube.pod_json import pod_from_json
from numalign.process.node import Node
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb
from numalign.v1.admission_pb2_grpc import AdmissionStub
from numalign.v1.hint_provider_pb2_grpc import HintProviderStub

pytestmark = pytest.mark.processes

PLUGINS = Path(__file__).with_name("bad_plugins.py")
ERROR = "rpc error: code = Unknown desc = out of order"

REFUSED = {
    "version": (
        'UNKNOWN: requested API version "v1alpha1" is not supported by kubelet. '
        'Supported version is ["v1beta1"]'
    ),
    "bad-name": 'UNKNOWN: the ResourceName "gpu" is invalid',
    "native-name": 'UNKNOWN: the ResourceName "kubernetes.io/gpu" is invalid',
    "found-version": (
        "RegisterPlugin error -- plugin validation failed with err: manager version, v1beta1, is "
        "not among plugin supported versions [v1alpha1]"
    ),
    "found-bad-name": (
        "RegisterPlugin error -- plugin validation failed with err: invalid name of device plugin "
        'socket: the ResourceName "gpu" is invalid'
    ),
    "found-type": (
        "RegisterPlugin error -- no handler registered for plugin type: GPUPlugin at socket "
        "{watched}/found-type"
    ),
    "found-no-options": (
        "RegisterPlugin error -- plugin registration failed with err: failed to get device plugin "
        "options: rpc error: code = Unknown desc = no options"
    ),
    "no-options": (
        "UNKNOWN: failed to get device plugin options: rpc error: code = Unknown desc = no options"
    ),
}
"""Plugins that are not taken in, and what they are told."""

FAILING = {
    "fails": ERROR,
    "hangs": "device plugin of example.com/hangs did not answer Allocate within ",
    "too-few": "no containers return in allocation response",
    "cannot-prefer": f"device plugin GetPreferredAllocation rpc failed with err: {ERROR}",
    "hangs-preferring": (
        "device plugin GetPreferredAllocation rpc failed with err: "
        "device plugin of example.com/hangs-preferring did not answer GetPreferredAllocation "
    ),
}
"""Plugins that fail the pods which ask for their devices, and how the pod's message begins."""

SERVING = {
    "twice": ["a"],
    "far": ["a"],
    "negative": ["a"],
    "half-far": ["a"],
    "unlisted": ["b"],
    "prefers-nothing": ["a"],
    "floods": ["a"],
    "good": ["a"],
}
"""Plugins of which a pod gets a device all the same, and which."""

ODD = {
    "twice": ("duplicate-id", 1),
    "far": ("unknown-numa-node", 2),
    "negative": ("unknown-numa-node", 2),
    "half-far": ("unknown-numa-node", 2),
}
"""What is counted of odd lists: the kind, and how often."""


@dataclass
class World:
    """A node in this process, an agent, and what the plugins were answered."""

    node: Node
    agent: Agent
    answers: dict[str, str | None]
    watched: Path

    async def resource(self, manner: str) -> hp.DeviceResource | None:
        stub = HintProviderStub(self.node.channel(Service.DEVICE))
        state = await stub.GetState(hp.GetStateRequest())
        found = (r for r in state.device.resources if r.resource == f"example.com/{manner}")
        return next(found, None)

    async def has(self, *manners: str) -> bool:
        """Whether all of these have told their devices."""
        found = [await self.resource(manner) for manner in manners]
        return all(resource is not None and resource.allocatable for resource in found)

    async def allocated(self, manner: str) -> list[str] | None:
        found = await self.resource(manner)
        return None if found is None else list(found.allocated)

    async def ask(self, manner: str, count: int = 1) -> ad.AdmitResponse:
        """Have a pod admitted that asks for devices of this plugin alone."""
        return await self.agent.admit(pod(manner, count))


def pod(manner: str, count: int) -> Pod:
    amounts = {"cpu": "100m", "memory": "64Mi", f"example.com/{manner}": str(count)}
    resources = {"limits": amounts, "requests": amounts}
    return pod_from_json(
        {
            "metadata": {"name": manner, "namespace": "default", "uid": manner},
            "spec": {"containers": [{"name": "c", "resources": resources}]},
        }
    )


@contextmanager
def plugins(world: Place, *manners: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, str(PLUGINS), str(world.plugins), str(world.watched), *manners],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


async def answered(process: subprocess.Popen[str]) -> dict[str, str | None]:
    assert process.stdout is not None
    line = await asyncio.to_thread(process.stdout.readline)
    told: dict[str, str | None] = json.loads(line)
    return told


@asynccontextmanager
async def running(*manners: str) -> AsyncIterator[World]:
    metrics = MetricsSettings(address=Address("127.0.0.1", 0))
    with place() as made:
        node = await Node.open(replace(made.settings(provider_timeout="10s"), metrics=metrics))
        try:
            await node.serving()
            with plugins(made, *manners) as process:
                answers = await answered(process)
                agent = Agent(AdmissionStub(node.channel(Service.ADMISSION)))
                world = World(node, agent, answers, made.watched)
                await until(lambda: world.has(*{*manners} - {*REFUSED}), "devices of all")
                yield world
        finally:
            await node.close()


async def test_each_is_told_what_it_did_and_harms_nobody_else() -> None:
    async with running(*REFUSED, *FAILING, "good") as world:
        refusals = {manner: await world.ask(manner) for manner in FAILING}
        left = {manner: await world.allocated(manner) for manner in FAILING}
        good = await world.ask("good")
        unserved = [await world.resource(manner) for manner in REFUSED]

    assert world.answers == {
        **{manner: error.format(watched=world.watched) for manner, error in REFUSED.items()},
        **dict.fromkeys((*FAILING, "good")),
    }
    assert unserved == [None] * len(REFUSED)
    for manner, error in FAILING.items():
        answer = refusals[manner]
        assert answer.reason == "UnexpectedAdmissionError", manner
        assert answer.message.startswith(f"Allocate failed due to {error}"), answer.message
        assert answer.message.endswith(", which is unexpected"), answer.message
    assert left == {manner: [] for manner in FAILING}
    assert good.verdict == pb.VERDICT_ADMITTED


async def test_what_makes_sense_of_a_list_or_a_preference_counts() -> None:
    async with running(*SERVING) as world:
        answers = {manner: await world.ask(manner) for manner in SERVING}
        twice = await world.resource("twice")
        page = samples(world.node.metrics.text())

    given = {m: devices_of(answer, f"example.com/{m}") for m, answer in answers.items()}
    assert given == SERVING
    nodes = {
        manner: [n.numa_node for n in answer.allocations[0].devices[0].by_numa_node]
        for manner, answer in answers.items()
    }
    assert {m: nodes[m] for m in ODD} == {
        "twice": [0],
        "far": [-1],
        "negative": [-1],
        "half-far": [1],
    }
    assert twice is not None
    assert (twice.capacity, twice.allocatable) == (2, 2)
    name = "numalign_device_plugin_odd_devices_total"
    assert {
        manner: page[f"{name}{{kind={kind},resource_name=example.com/{manner}}}"]
        for manner, (kind, _) in ODD.items()
    } == {manner: count for manner, (_, count) in ODD.items()}


async def test_one_that_dies_between_its_two_calls_leaves_nothing() -> None:
    async with running("dies") as world:
        refused = await world.ask("dies")

        async def gone() -> bool:
            found = await world.resource("dies")
            return found is not None and not found.connected

        await until(gone, "its end is noticed")
        left = await world.allocated("dies")
        again = await world.ask("dies")
        other = await world.agent.admit(pod("nobody", 0))

    assert refused.reason == "UnexpectedAdmissionError"
    # Its stream may end before its call does.
    stopped = "endpoint example.com/dies has been stopped, which is unexpected"
    ended = "rpc error: code = Unavailable desc = "
    assert refused.message.removeprefix("Allocate failed due to ").startswith((ended, stopped))
    assert left == []
    assert again.verdict == pb.VERDICT_REJECTED
    assert again.reason == "TopologyAffinityError"
    assert other.verdict == pb.VERDICT_ADMITTED
