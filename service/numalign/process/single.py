"""One service in a process of its own: its state file, and channels to the others' sockets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from numalign.config.machine_source import configured_machine
from numalign.config.settings import Service, Settings
from numalign.errors import ConfigError
from numalign.process.channels import provider_channel, topology_channel
from numalign.process.layout import refuse_other_layout, state_name
from numalign.process.metrics import count_reports, observe_commit
from numalign.process.part import Part
from numalign.store.database import Database
from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics

_log = get_logger("single")


async def open_part(service: Service, settings: Settings, metrics: Metrics) -> Part:
    """The part of one service, over its own state file.

    Only what the service needs is imported. Raises StartError with the kubelet's text,
    StateError for a state that cannot be used, ConfigError for a wrong machine.
    """
    if service is Service.ADMISSION:
        from numalign.process.admission_part import admission_part  # noqa: PLC0415 - memory
        from numalign.process.readiness import topology_serves  # noqa: PLC0415 - memory

        topology = topology_channel(settings.endpoints[Service.TOPOLOGY])
        return admission_part(settings, topology, metrics, partial(topology_serves, topology))
    if service is Service.TOPOLOGY:
        return await _topology(settings, metrics)
    if service is Service.DRA:
        return await _claims(settings, metrics)
    return await _provider(service, settings, metrics)


async def _topology(settings: Settings, metrics: Metrics) -> Part:
    from numalign.process.compatibility import strategies_of  # noqa: PLC0415 - memory
    from numalign.process.topology_context import (  # noqa: PLC0415 - memory
        TopologyContext,
        build_decider,
    )
    from numalign.process.topology_part import (  # noqa: PLC0415 - memory
        PROVIDER_ORDER,
        topology_part,
    )
    from numalign.provider.pod_cache import PodCache  # noqa: PLC0415 - memory

    context = TopologyContext(
        settings=settings,
        machine=configured_machine(settings.machine).machine,
        strategies=strategies_of(settings.compatibility),
        pods=PodCache(),
        metrics=metrics,
    )
    decider = build_decider(context)
    callees = (*PROVIDER_ORDER, Service.DRA)
    channels = {
        s: provider_channel(settings.endpoints[s]) for s in callees if s in settings.services
    }
    return await _over_state(
        settings,
        Service.TOPOLOGY,
        metrics,
        lambda database: topology_part(context, decider, database, channels, provider_channel),
    )


async def _claims(settings: Settings, metrics: Metrics) -> Part:
    from numalign.process.dra_part import dra_part  # noqa: PLC0415 - memory

    if not settings.dra.enabled:
        raise ConfigError("numalign.dra.enabled: is false, and then there is nothing to serve")
    return await _over_state(
        settings, Service.DRA, metrics, lambda database: dra_part(settings, metrics, database)
    )


async def _provider(service: Service, settings: Settings, metrics: Metrics) -> Part:
    from numalign.process import provider_parts as parts  # noqa: PLC0415 - memory
    from numalign.process.compatibility import strategies_of  # noqa: PLC0415 - memory
    from numalign.process.provider_context import ProviderContext  # noqa: PLC0415 - memory
    from numalign.provider.pod_cache import PodCache  # noqa: PLC0415 - memory

    context = ProviderContext(
        settings=settings,
        machine=configured_machine(settings.machine).machine,
        strategies=strategies_of(settings.compatibility),
        pods=PodCache(),
        durable=True,
        metrics=metrics,
    )
    make: Callable[[Database], Awaitable[Part]]
    if service is Service.CPU:
        cpu = parts.build_cpu_engine(context)

        def make(database: Database) -> Awaitable[Part]:
            return parts.cpu_part(context, cpu, database)

    elif service is Service.MEMORY:
        memory = parts.build_memory_engine(context)

        def make(database: Database) -> Awaitable[Part]:
            return parts.memory_part(context, memory, database)

    else:
        device, plugins = parts.build_device_engine(context)

        def make(database: Database) -> Awaitable[Part]:
            return parts.device_part(context, device, plugins, database)

    return await _over_state(settings, service, metrics, make)


async def _over_state(
    settings: Settings,
    service: Service,
    metrics: Metrics,
    make: Callable[[Database], Awaitable[Part]],
) -> Part:
    from numalign.process.compatibility import strategies_of  # noqa: PLC0415 - memory

    refuse_other_layout(settings.state_directory, together=False)
    database = Database.open(
        settings.state_directory,
        state_name(service),
        report=_log.warning,
        observe_commit=observe_commit(metrics),
        on_damage=strategies_of(settings.compatibility).on_damage,
    )
    try:
        part = await make(database)
    except BaseException:
        await database.close()
        raise

    async def close() -> None:
        await part.close()
        await database.close()

    def reports() -> tuple[str, ...]:
        return (*database.reports, *part.reports())

    count_reports(metrics, service, reports)
    return replace(part, close=close, reports=reports)
