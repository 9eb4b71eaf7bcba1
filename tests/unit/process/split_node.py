"""A node whose services keep a state file each, in one process, so that files can be lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from grpc import aio

from numalign.config.machine_source import read_machine
from numalign.config.settings import CORE_SERVICES, Service, Settings
from numalign.process import provider_parts
from numalign.process.admission_part import admission_part
from numalign.process.compatibility import strategies_of
from numalign.process.metrics import open_metrics
from numalign.process.part import Part, nothing
from numalign.process.provider_context import ProviderContext
from numalign.process.topology_context import TopologyContext, build_decider
from numalign.process.topology_part import topology_part
from numalign.provider.pod_cache import PodCache
from numalign.rpc.channel import open_channel, open_local_channel
from numalign.rpc.local import LocalServer
from numalign.store.database import Database
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import hint_provider_pb2_grpc as hp_grpc


class SplitNode:
    """The running services; `admission` is what an agent calls."""

    def __init__(self, parts: dict[Service, Part], channels: dict[Service, aio.Channel]) -> None:
        self.parts = parts
        self.admission = ad_grpc.AdmissionStub(channels[Service.ADMISSION])
        self._channels = channels

    async def state(self, service: Service) -> hp.GetStateResponse:
        """The books of a provider."""
        stub = hp_grpc.HintProviderStub(self._channels[service])
        return await stub.GetState(hp.GetStateRequest())

    def watch(self, service: Service) -> AsyncIterator[hp.WatchResponse]:
        """What a provider tells without being asked."""
        stub = hp_grpc.HintProviderStub(self._channels[service])
        return aiter(stub.Watch(hp.WatchRequest()))


@asynccontextmanager
async def split_node(settings: Settings) -> AsyncIterator[SplitNode]:
    """Open the services over their own files, and close them."""
    machine = read_machine(settings.machine).machine
    strategies = strategies_of(settings.compatibility)
    pods = PodCache()
    metrics = open_metrics(None, settings)
    context = ProviderContext(
        settings=settings,
        machine=machine,
        strategies=strategies,
        pods=pods,
        durable=True,
        metrics=metrics,
    )
    topology = TopologyContext(
        settings=settings, machine=machine, strategies=strategies, pods=pods, metrics=metrics
    )
    servers = {service: LocalServer() for service in CORE_SERVICES}
    channels = {service: open_local_channel(server) for service, server in servers.items()}
    databases = {
        service: Database.open(
            settings.state_directory, service.value, report=print, on_damage=strategies.on_damage
        )
        for service in CORE_SERVICES
        if service is not Service.ADMISSION
    }
    device, plugins = provider_parts.build_device_engine(context)
    parts = {
        Service.CPU: await provider_parts.cpu_part(
            context, provider_parts.build_cpu_engine(context), databases[Service.CPU]
        ),
        Service.MEMORY: await provider_parts.memory_part(
            context, provider_parts.build_memory_engine(context), databases[Service.MEMORY]
        ),
        Service.DEVICE: await provider_parts.device_part(
            context, device, plugins, databases[Service.DEVICE]
        ),
        Service.TOPOLOGY: await topology_part(
            topology, build_decider(topology), databases[Service.TOPOLOGY], channels, _nobody
        ),
        Service.ADMISSION: admission_part(settings, channels[Service.TOPOLOGY], metrics, nothing),
    }
    for service, part in parts.items():
        servers[service].add([part.registration])
    try:
        for part in parts.values():
            await part.serving()
        yield SplitNode(parts, channels)
    finally:
        for part in reversed(parts.values()):
            await part.close()
        for database in databases.values():
            await database.close()


def _nobody(path: Path) -> aio.Channel:
    return open_channel(path)
