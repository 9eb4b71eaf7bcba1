"""Asks the services for everything that the node's NodeResourceTopology says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from grpc.aio import AioRpcError, Channel

from numalign.document.problems import DocumentError
from numalign.machine.schema import machine_from_document
from numalign.model.machine import Machine
from numalign.rpc.channel import open_channel
from numalign.v1 import control_pb2 as ct
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import types_pb2 as pb
from numalign.v1.control_pb2_grpc import ControlStub
from numalign.v1.node_resources_pb2 import NodeResources
from numalign.v1.topology_pb2_grpc import TopologyManagerStub
from numalign_agent.node.topology.objects import Policy
from numalign_client.asynchronous import AsyncAdmissionClient
from numalign_client.errors import AdmissionError

_SECONDS = 10.0
_TRIES = 10
_BETWEEN_TRIES = 0.05


class NotTold(Exception):
    """The services did not say how the node stands; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """The node at one moment: what it has, and the pods that the free amounts are without."""

    machine: Machine
    policy: Policy
    resources: NodeResources
    admissions: tuple[pb.AdmissionRecord, ...]


class FactsReader:
    """Channels to Admission and the Topology Manager. Calls raise NotTold."""

    def __init__(self, admission: Path, topology: Path) -> None:
        self._admission = AsyncAdmissionClient(channel=open_channel(admission))
        self._channel: Channel = open_channel(topology)
        self._topology = TopologyManagerStub(self._channel)
        self._control = ControlStub(self._channel)
        self._machine: tuple[int, Machine] | None = None

    async def changes(self) -> AsyncIterator[None]:
        """Once at the beginning, and whenever something may have changed, without end."""
        try:
            async for _ in self._admission.watch_node_resources():
                yield
        except AdmissionError as error:
            raise NotTold(f"Admission: {error}") from error

    async def read(self) -> NodeFacts:
        """The node as it stands."""
        try:
            resources, admissions = await self._at_one_revision()
            answer = await self._topology.GetPolicy(tm.GetPolicyRequest(), timeout=_SECONDS)
            machine = await self._machine_of(answer.config_generation)
        except AdmissionError as error:
            raise NotTold(f"Admission: {error}") from error
        except AioRpcError as error:
            why = f"{error.code().name}: {error.details()}"
            raise NotTold(f"the Topology Manager: {why}") from error
        policy = Policy(policy=answer.policy, scope=answer.scope, options=dict(answer.options))
        return NodeFacts(machine=machine, policy=policy, resources=resources, admissions=admissions)

    def forget_machine(self) -> None:
        """Have the machine read anew with the next facts: CPUs and memory come and go."""
        self._machine = None

    async def close(self) -> None:
        """Close the channels."""
        await self._admission.close()
        await self._channel.close()

    async def _at_one_revision(self) -> tuple[NodeResources, tuple[pb.AdmissionRecord, ...]]:
        """What is free and who is admitted, told of one revision.

        A fingerprint of pods whose resources still show as free would have a scheduler believe
        that they are.
        """
        for _ in range(_TRIES):
            resources = await self._admission.get_node_resources(timeout=_SECONDS)
            listing = await self._admission.list_admissions(timeout=_SECONDS)
            if listing.revision == resources.revision:
                return resources, tuple(listing.admissions)
            await asyncio.sleep(_BETWEEN_TRIES)
        raise NotTold("pods are admitted and released faster than the node can be read")

    async def _machine_of(self, generation: int) -> Machine:
        """The machine, read anew for each configuration: distances and sizes do not change else."""
        if self._machine is not None and self._machine[0] == generation:
            return self._machine[1]
        answer = await self._control.GetConfiguration(
            ct.GetConfigurationRequest(), timeout=_SECONDS
        )
        document = json.loads(answer.document)
        try:
            machine = machine_from_document(document["numalign"]["machine"])
        except (KeyError, DocumentError) as error:
            raise NotTold(f"the Topology Manager's machine cannot be read: {error}") from error
        self._machine = generation, machine
        return machine
