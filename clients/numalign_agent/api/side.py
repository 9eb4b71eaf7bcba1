"""Everything of an agent that speaks to its API server, put together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from numalign.kube.core.v1 import core_pb2
from numalign.v1.node_resources_pb2 import NodeResources
from numalign_agent.api.mirror_pods import ApiMirrorPods
from numalign_agent.api.node_follower import NodeFollower
from numalign_agent.api.node_teller import NodeTeller
from numalign_agent.api.own_node.facts import read_facts
from numalign_agent.api.own_node.reporter import NodeReporter
from numalign_agent.api.server import ApiServer, connect
from numalign_agent.api.status_sink import ApiStatusSink
from numalign_agent.claims.api_reader import ApiClaimReader
from numalign_agent.claims.slices import DriverQuestion, ResourceSlices
from numalign_agent.config.settings import ApiSettings
from numalign_agent.status.port import PodQuestions


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCalls:
    """What the node's side asks of others.

    `tell` is Admission's SetNode, `resources` its GetNodeResources; both may raise
    AdmissionError. `not_ready` says why no pod can be started, None when all is well.
    """

    tell: Callable[[core_pb2.Node], Awaitable[None]]
    resources: Callable[[], Awaitable[NodeResources]]
    not_ready: Callable[[], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSide:
    """The parts.

    `reporter` is there where nobody else reports the node, `slices` where besides numalign has
    claims prepared.
    """

    node_name: str
    server: ApiServer
    node: NodeFollower
    teller: NodeTeller
    mirrors: ApiMirrorPods
    reporter: NodeReporter | None
    drivers: DriverQuestion | None
    slices: ResourceSlices | None

    def status_sink(self, questions: PodQuestions) -> ApiStatusSink:
        """Who sends statuses and events; it has a `run` of its own."""
        return ApiStatusSink(self.server, self.node_name, questions)

    def claim_reader(self) -> ApiClaimReader:
        """Who reads the resource claims of pods."""
        return ApiClaimReader(self.server)

    def problems(self) -> Mapping[str, str]:
        """What of the node cannot be read or reported at present, and why."""
        reported = self.reporter.problems() if self.reporter is not None else {}
        left = self.slices.problems() if self.slices is not None else {}
        return {**self.node.problems(), **reported, **left}

    async def run(self) -> None:
        """Follow the node, tell Admission, report; until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.node.run())
            tasks.create_task(self.teller.run())
            if self.reporter is not None:
                tasks.create_task(self.reporter.run())
            if self.slices is not None:
                tasks.create_task(self.slices.run())

    async def close(self) -> None:
        """Close the connections."""
        if self.drivers is not None:
            await self.drivers.close()
        await self.server.close()


async def connect_api(
    settings: ApiSettings, node_name: str, version: str, calls: NodeCalls
) -> ApiSide:
    """The parts for one API server; nothing is sent yet. `version` is the agent's.

    Raises ApiError for credentials that cannot be used.
    """
    server = await connect(settings.kubeconfig, settings.context)
    teller = NodeTeller(calls.tell)
    node = NodeFollower(server, node_name, [teller.take], is_ours=settings.own_node)
    reporter, drivers, slices = None, None, None
    if settings.own_node and settings.dra_socket is not None:
        drivers = DriverQuestion(settings.dra_socket)
        slices = ResourceSlices(server, node_name, drivers.connected)
    if settings.own_node:
        reporter = NodeReporter(
            server,
            node_name,
            read_facts(version),
            calls.resources,
            calls.not_ready,
            lease_seconds=settings.lease_seconds,
            status_seconds=settings.status_every,
        )
    return ApiSide(
        node_name=node_name,
        server=server,
        node=node,
        teller=teller,
        mirrors=ApiMirrorPods(server, node_name, node.node),
        reporter=reporter,
        drivers=drivers,
        slices=slices,
    )
