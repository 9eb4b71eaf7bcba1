"""Asking the services of a node for everything that a snapshot holds, in one picture.

What is admitted comes with the revision it is true of; if the node has moved on when everything
else has been asked, it is asked again.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Self, TypeVar

from grpc import StatusCode
from grpc.aio import AioRpcError, Channel

from numalign.cli.calls import Unreachable, answer, channel_to
from numalign.cli.endpoint import Endpoint
from numalign.cli.failure import describe_status
from numalign.cli.options import Reach
from numalign.cli.snapshot.partial import NOT_SHOWN, partial_resources
from numalign.cli.snapshot.values import AdmittedPod, NodeSnapshot
from numalign.config.settings import Service
from numalign.v1 import control_pb2 as ct
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import topology_pb2_grpc as tm_grpc
from numalign.v1.admission_pb2_grpc import AdmissionStub
from numalign.v1.control_pb2_grpc import ControlStub
from numalign.v1.hint_provider_pb2_grpc import HintProviderStub
from numalign.v1.node_resources_pb2 import NodeResources

T = TypeVar("T")

MOST_DECISIONS = 200
_TRIES = 5
_PROVIDERS = (Service.CPU, Service.MEMORY, Service.DEVICE)


class Asker:
    """Channels to the services of one node. Use it as a context manager."""

    def __init__(self, endpoints: Mapping[Service, Endpoint], reach: Reach) -> None:
        self._endpoints = endpoints
        self._seconds = reach.timeout
        self._node = socket.gethostname() if reach.remote is None else reach.remote.node
        self._stack = AsyncExitStack()
        self._channels: dict[Service, Channel] = {}

    async def __aenter__(self) -> Self:
        for service, endpoint in self._endpoints.items():
            channel = channel_to(endpoint)
            self._channels[service] = await self._stack.enter_async_context(channel)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def snapshot(self, *, decisions: int = MOST_DECISIONS) -> tuple[NodeSnapshot, list[str]]:
        """The node, and a line for each service that is down, with what is missing therefore.

        Raises AioRpcError or Unreachable where the Topology Manager, without whom there is no
        picture, does not answer.
        """
        for _ in range(_TRIES):
            found, problems = await self._once(decisions)
            if found.revision == await self._revision():
                break
        else:
            problems.append("the node changed while it was asked: its parts differ in time")
        return found, problems

    async def _once(self, decisions: int) -> tuple[NodeSnapshot, list[str]]:
        problems: list[str] = []
        admitted, shared, revision = await self._admissions()
        books = dict(
            zip(
                _PROVIDERS, await asyncio.gather(*(self._state(s) for s in _PROVIDERS)), strict=True
            )
        )
        problems += [b for b in books.values() if isinstance(b, str)]
        states = {s: b for s, b in books.items() if isinstance(b, hp.GetStateResponse)}
        made = await self._missing(problems, Service.ADMISSION, self._decisions(decisions))
        services = await asyncio.gather(*(self._status(s) for s in self._channels))
        resources = await self._resources()
        topology = self._topology()
        listed = await self._call(
            Service.TOPOLOGY, topology.ListHintProviders(tm.ListHintProvidersRequest())
        )
        configuration = await self._call(
            Service.TOPOLOGY,
            ControlStub(self._channels[Service.TOPOLOGY]).GetConfiguration(
                ct.GetConfigurationRequest(), timeout=self._seconds
            ),
        )
        document = json.loads(configuration.document)
        if isinstance(resources, str):
            if len(states) == len(_PROVIDERS):
                # It is down, or not found, for the Topology Manager alone.
                problems.append(resources)
            resources = partial_resources(revision, admitted, document, states)
        snapshot = NodeSnapshot(
            taken=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            node=self._node,
            configuration=document,
            revision=revision,
            admissions=tuple(admitted),
            shared_cpus=shared,
            resources=resources,
            providers=tuple(listed.providers),
            services={service.value: status for service, status in services if status is not None},
            decisions=() if made is None else tuple(made.decisions),
            cpu=states[Service.CPU].cpu if Service.CPU in states else None,
            memory=states[Service.MEMORY].memory if Service.MEMORY in states else None,
            device=states[Service.DEVICE].device if Service.DEVICE in states else None,
        )
        return snapshot, problems

    async def _admissions(self) -> tuple[list[AdmittedPod], str, int]:
        stream = self._topology().WatchAdmissions(
            tm.WatchAdmissionsRequest(with_pods=True), timeout=self._seconds
        )
        admitted: list[AdmittedPod] = []
        shared = ""
        events = aiter(stream)
        try:
            while True:
                item = await self._call(Service.TOPOLOGY, anext(events))
                kind = item.event.WhichOneof("event")
                if kind == "existing":
                    admitted.append(AdmittedPod(item.event.existing, item.pod))
                elif kind == "shared_cpus":
                    shared = item.event.shared_cpus.cpus
                elif kind == "synced":
                    return admitted, shared, item.event.revision
        finally:
            stream.cancel()

    async def _resources(self) -> NodeResources | str:
        """What the node has; the Topology Manager's word for it where a provider is down."""
        request = tm.TopologyManagerGetNodeResourcesRequest()
        call = self._topology().GetNodeResources(request, timeout=self._seconds)
        try:
            return (await self._call(Service.TOPOLOGY, call)).resources
        except AioRpcError as error:
            if error.code() is not StatusCode.UNAVAILABLE:
                raise
            return _line(Service.TOPOLOGY, error)

    async def _revision(self) -> int:
        resources = await self._resources()
        if isinstance(resources, str):
            return (await self._admissions())[2]
        return resources.revision

    async def _state(self, service: Service) -> hp.GetStateResponse | str:
        stub = HintProviderStub(self._channels[service])
        try:
            call = stub.GetState(hp.GetStateRequest(), timeout=self._seconds)
            return await self._call(service, call)
        except (AioRpcError, Unreachable) as error:
            return _line(service, error)

    async def _status(self, service: Service) -> tuple[Service, ct.GetStatusResponse | None]:
        stub = ControlStub(self._channels[service])
        try:
            call = stub.GetStatus(ct.GetStatusRequest(), timeout=self._seconds)
            return service, await self._call(service, call)
        except (AioRpcError, Unreachable):
            return service, None  # whoever is missing is named by what else it was asked

    async def _decisions(self, limit: int) -> dc.ListDecisionsResponse:
        request = dc.ListDecisionsRequest(limit=limit, with_explanations=True)
        stub = AdmissionStub(self._channels[Service.ADMISSION])
        call = stub.ListDecisions(request, timeout=self._seconds)
        try:
            return await self._call(Service.ADMISSION, call)
        except AioRpcError as error:
            if error.code() is StatusCode.FAILED_PRECONDITION:  # no journal is kept
                return dc.ListDecisionsResponse()
            raise

    async def _missing(self, problems: list[str], service: Service, call: Awaitable[T]) -> T | None:
        try:
            return await call
        except (AioRpcError, Unreachable) as error:
            problems.append(_line(service, error))
            return None

    async def _call(self, service: Service, call: Awaitable[T]) -> T:
        return await answer(service, self._endpoints[service], call)

    def _topology(self) -> tm_grpc.TopologyManagerAsyncStub:
        return tm_grpc.TopologyManagerStub(self._channels[Service.TOPOLOGY])


def _line(service: Service, error: AioRpcError | Unreachable) -> str:
    if isinstance(error, Unreachable):
        line = str(error)
    else:
        line = f"{service.value} service: {'; '.join(describe_status(error))}"
    missing = NOT_SHOWN.get(service)
    return line if missing is None else f"{line}; not shown: {missing}"
