"""A whole node in one process: the embedded way, with local channels between its parts.

The same parts as in five processes; only the transport between them differs. All stores share
one state file, so that an admission is one sync.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Self

from grpc import aio

from numalign.config.machine_source import configured_machine
from numalign.config.settings import Service, Settings
from numalign.process.admission_part import admission_part
from numalign.process.channels import provider_channel
from numalign.process.compatibility import strategies_of
from numalign.process.control import ControlServicer, control_registration
from numalign.process.layout import refuse_other_layout, state_name
from numalign.process.metrics import count_reports, observe_commit, open_metrics
from numalign.process.part import Part
from numalign.process.provider_context import ProviderContext
from numalign.process.provider_parts import (
    build_cpu_engine,
    build_device_engine,
    build_memory_engine,
    cpu_part,
    device_part,
    memory_part,
)
from numalign.process.reload import ReadSettings, Reloader
from numalign.process.topology_context import TopologyContext, build_decider
from numalign.process.topology_part import topology_part
from numalign.provider.pod_cache import PodCache
from numalign.rpc.channel import open_local_channel
from numalign.rpc.local import LocalServer
from numalign.store.database import Database
from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign.telemetry.tracing import active_tracer

_log = get_logger("node")


class Node:
    """All services over one state directory. Open it with `Node.open`."""

    def __init__(
        self,
        parts: tuple[Part, ...],
        channels: Mapping[Service, aio.Channel],
        database: Database,
        control: ControlServicer,
        reloader: Reloader,
        metrics: Metrics,
    ) -> None:
        self.parts = parts
        self.control = control
        self.reloader = reloader
        self.metrics = metrics
        self._channels = channels
        self._database = database

    @classmethod
    async def open(cls, settings: Settings, read: ReadSettings | None = None) -> Self:
        """Put everything together in the order in which a kubelet does.

        `read` reads the configuration again for a reload. Raises StartError with the stage and
        the text of the part that refuses, StateError for a state that cannot be used, and
        ConfigError for a machine that cannot be described.
        """
        machine = configured_machine(settings.machine).machine
        strategies = strategies_of(settings.compatibility)
        pods = PodCache()
        metrics = open_metrics(None, settings)
        topology = TopologyContext(
            settings=settings, machine=machine, strategies=strategies, pods=pods, metrics=metrics
        )
        context = ProviderContext(
            settings=settings,
            machine=machine,
            strategies=strategies,
            pods=pods,
            durable=False,
            metrics=metrics,
        )
        decider = build_decider(topology)
        cpu = build_cpu_engine(context)
        memory = build_memory_engine(context)
        device, plugins = build_device_engine(context)
        refuse_other_layout(settings.state_directory, together=True)
        database = Database.open(
            settings.state_directory,
            state_name(None),
            report=_log.warning,
            observe_commit=observe_commit(metrics),
            on_damage=strategies.on_damage,
        )
        try:
            tracer = active_tracer()
            servers = {service: LocalServer(tracer) for service in settings.services}
            channels = {
                service: open_local_channel(server, tracer) for service, server in servers.items()
            }
            manager = await topology_part(topology, decider, database, channels, provider_channel)
            parts = (
                *await _claim_parts(settings, metrics, database),
                await cpu_part(context, cpu, database),
                await memory_part(context, memory, database),
                await device_part(context, device, plugins, database),
                _with_reports(manager, database),
                admission_part(settings, channels[Service.TOPOLOGY], metrics, manager.ready),
            )
        except BaseException:
            await database.close()
            raise
        for part in parts:
            if part.service is not Service.ADMISSION:
                count_reports(metrics, part.service, part.reports)
        reloader = Reloader(settings, read or (lambda: settings), parts)
        control = ControlServicer(reloader.reload, parts, reloader.latest)
        for part in parts:
            servers[part.service].add([part.registration, control_registration(control)])
        return cls(parts, channels, database, control, reloader, metrics)

    def channel(self, service: Service) -> aio.Channel:
        """A channel to one of the services, inside the process."""
        return self._channels[service]

    async def serving(self) -> None:
        """Begin what runs by itself, once the services can be reached."""
        for part in self.parts:
            await part.serving()

    async def close(self) -> None:
        """Stop what runs by itself and close the state."""
        for part in reversed(self.parts):
            await part.close()
        await self._database.close()


async def _claim_parts(
    settings: Settings, metrics: Metrics, database: Database
) -> tuple[Part, ...]:
    """The part of resource claims, on a node that has it."""
    if not settings.dra.enabled:
        return ()
    from numalign.process.dra_part import dra_part  # noqa: PLC0415 - memory of nodes without

    return (await dra_part(settings, metrics, database),)


def _with_reports(part: Part, database: Database) -> Part:
    """The part that also says what happened to the state file that all share."""
    return replace(part, reports=lambda: (*database.reports, *part.reports()))
