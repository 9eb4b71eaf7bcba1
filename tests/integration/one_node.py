"""A whole node in this process, opened for one test, with the parts that tests look behind."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.integration.books import faults_of
from tests.integration.node_document import document

from numalign.config.loader import load_settings
from numalign.config.settings import Service
from numalign.errors import Unavailable
from numalign.process.node import Node
from numalign.provider.ledger import Ledger
from numalign.provider.opening import open_ledger
from numalign.topology.turnstile import Turnstile
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import hint_provider_pb2_grpc as hp_grpc

PROVIDERS = (Service.CPU, Service.MEMORY, Service.DEVICE)


class Down:
    """Stands in for the ledger of a provider that is not running."""

    def __getattr__(self, name: str) -> Any:
        raise Unavailable("the provider is down")


class OneNode:
    """A node and its stubs."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.admission: ad_grpc.AdmissionAsyncStub = ad_grpc.AdmissionStub(
            node.channel(Service.ADMISSION)
        )
        self.providers = [hp_grpc.HintProviderStub(node.channel(s)) for s in PROVIDERS]

    def servicer(self, service: Service) -> Any:
        """The servicer of one service."""
        (part,) = (part for part in self.node.parts if part.service is service)
        return part.registration.servicer

    @property
    def turnstile(self) -> Turnstile:
        """Where calls wait."""
        turnstile = self.servicer(Service.TOPOLOGY)._manager._turnstile
        assert isinstance(turnstile, Turnstile)
        return turnstile

    async def settled(self) -> None:
        """Wait until the Topology Manager has told every provider how things are."""
        handles = self.servicer(Service.TOPOLOGY)._registry.handles
        async with asyncio.timeout(60):
            while not all(handle.instance_id for handle in handles) or self.turnstile.waiting:  # noqa: ASYNC110 - no event says it
                await asyncio.sleep(0.001)
            async with self.turnstile.turn():
                pass

    async def restart_provider(self, service: Service) -> None:
        """What a provider knows is what it stored, and it is another process than before.

        In one process no call of a ledger is ever half done between two turns of the event
        loop, so the old ledger can be put away at any of them.
        """
        servicer = self.servicer(service)
        old = servicer._ledger
        if not isinstance(old, Ledger):
            return
        servicer._ledger = Down()
        servicer._instance_id = f"restarted-{id(old)}"
        servicer._ledger = await open_ledger(
            old.engine, old._store, old._cleanup, recorded=old._recorded
        )

    async def listing(self) -> ad.ListAdmissionsResponse:
        """Who is admitted."""
        return await self.admission.ListAdmissions(ad.ListAdmissionsRequest())

    async def faults(self) -> list[str]:
        """What is wrong with the books."""
        listing = await self.listing()
        return faults_of(listing, [await p.GetState(hp.GetStateRequest()) for p in self.providers])

    async def shared_cpus_agree(self) -> bool:
        """Whether the list names the shared CPUs of the books, now or in a moment."""
        for _ in range(6000):
            state = await self.providers[0].GetState(hp.GetStateRequest())
            if (await self.listing()).shared_cpus == state.cpu.default_cpus:
                return True
            await asyncio.sleep(0.01)
        return False


@asynccontextmanager
async def opened(directory: Path, **extension: object) -> AsyncIterator[OneNode]:
    """A node over `directory`, with keys of the numalign section replaced."""
    path = directory / "config.yaml"
    path.write_text(yaml.safe_dump(document(directory, **extension)))
    node = await Node.open(load_settings(path, os.environ, is_root=False))
    try:
        await node.serving()
        one = OneNode(node)
        await one.settled()
        yield one
    finally:
        await node.close()
