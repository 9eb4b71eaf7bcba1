"""A node over a configuration file that tests write anew and have read again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.integration.books import faults_of
from tests.unit.process.observed_world import document, pod

from numalign.config.loader import load_settings
from numalign.config.settings import Service, Settings
from numalign.process.node import Node
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import control_pb2 as ct
from numalign.v1 import control_pb2_grpc as ct_grpc
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import hint_provider_pb2_grpc as hp_grpc
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import topology_pb2_grpc as tm_grpc
from numalign.v1 import types_pb2 as pb

PROVIDERS = (Service.CPU, Service.MEMORY, Service.DEVICE)


class World:
    """A node, and the configuration file that it reads again."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._document = document(directory)
        self._path = directory / "config.yaml"
        self.node: Node

    def write(self, numalign: dict[str, Any] | None = None, **kubelet: Any) -> None:
        """Change keys of the file; None takes one away."""
        self._document |= kubelet
        self._document["numalign"] |= numalign or {}
        kept = {key: value for key, value in self._document.items() if value is not None}
        self._path.write_text(yaml.safe_dump(kept))

    def read(self) -> Settings:
        return load_settings(self._path, {}, False)

    async def start(self) -> None:
        self.node = await Node.open(self.read(), self.read)
        await self.node.serving()
        self.admission = ad_grpc.AdmissionStub(self.node.channel(Service.ADMISSION))
        self.control = ct_grpc.ControlStub(self.node.channel(Service.CPU))

    async def reload(
        self, numalign: dict[str, Any] | None = None, **kubelet: Any
    ) -> ct.ReloadResponse:
        self.write(numalign, **kubelet)
        return await self.control.Reload(ct.ReloadRequest())

    async def admit(self, name: str, **asked: str) -> ad.AdmitResponse:
        return await self.admission.Admit(ad.AdmitRequest(pod=pod(name, **asked)))

    async def listed(self) -> dict[str, pb.AdmissionRecord]:
        listing = await self.admission.ListAdmissions(ad.ListAdmissionsRequest())
        return {record.name: record for record in listing.admissions}

    async def policy(self) -> tm.GetPolicyResponse:
        stub = tm_grpc.TopologyManagerStub(self.node.channel(Service.TOPOLOGY))
        return await stub.GetPolicy(tm.GetPolicyRequest())

    async def state(self, service: Service) -> hp.GetStateResponse:
        stub = hp_grpc.HintProviderStub(self.node.channel(service))
        return await stub.GetState(hp.GetStateRequest())

    async def agree(self) -> None:
        listing = await self.admission.ListAdmissions(ad.ListAdmissionsRequest())
        assert faults_of(listing, [await self.state(service) for service in PROVIDERS]) == []


@asynccontextmanager
async def running(directory: Path, **kubelet: Any) -> AsyncIterator[World]:
    world = World(directory)
    world.write(**kubelet)
    await world.start()
    try:
        yield world
    finally:
        await world.node.close()
