"""The three built-in hint providers, each put together from its settings."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from numalign.config.settings import Service, Settings
from numalign.cpu import engine as cpu
from numalign.cpu.messages import CpuBooks
from numalign.device import engine as device
from numalign.device.messages import DeviceBooks
from numalign.device.static_plugins import StaticPlugins, static_inventory
from numalign.device.static_reload import reloaded
from numalign.memory import engine as memory
from numalign.memory.messages import MemoryBooks
from numalign.model.machine import Machine
from numalign.process.compatibility import Strategies
from numalign.process.part import Part
from numalign.provider.engine import Engine
from numalign.provider.ledger import Ledger, open_ledger
from numalign.provider.pod_cache import PodCache
from numalign.provider.servicer import Books, HintProviderServicer, SilentObserver
from numalign.rpc.methods import Registration
from numalign.store.database import Database
from numalign.store.provider_store import ProviderStore
from numalign.v1.hint_provider_pb2_grpc import add_HintProviderServicer_to_server

S = TypeVar("S")

HEALTH_NAME = "numalign.v1.HintProvider"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderContext:
    """What every provider of a process is built from.

    `durable` says whether a prepared part is synced by itself, which it must be unless the
    Topology Manager's record is in the same file.
    """

    settings: Settings
    machine: Machine
    strategies: Strategies
    pods: PodCache
    durable: bool


def build_cpu_engine(context: ProviderContext) -> cpu.CpuEngine:
    """The CPU engine. Raises StartError with the kubelet's text."""
    settings = context.settings
    return cpu.build_engine(
        settings.cpu,
        settings.topology,
        context.machine,
        settings.gates,
        context.strategies.cpu,
        state_file=str(settings.state_directory / "cpu_manager_state"),
    )


def build_memory_engine(context: ProviderContext) -> memory.MemoryEngine:
    """The memory engine. Raises StartError with the kubelet's text."""
    settings = context.settings
    strategies = replace(context.strategies.memory, directory=str(settings.state_directory))
    return memory.build_engine(settings.memory, context.machine, settings.gates, strategies)


def build_device_engine(context: ProviderContext) -> tuple[device.DeviceEngine, StaticPlugins]:
    """The device engine over the configured inventory, and the plugins behind it."""
    plugins = StaticPlugins(context.settings.devices)
    engine = device.build_engine(
        static_inventory(context.settings.devices),
        context.machine,
        context.settings.gates,
        plugins,
        context.strategies.device,
    )
    return engine, plugins


async def cpu_part(context: ProviderContext, engine: cpu.CpuEngine, database: Database) -> Part:
    """The CPU provider over its state. Raises StartError where the start check refuses."""
    ledger = await _ledger(context, engine, database)
    return _part(Service.CPU, context, ledger, CpuBooks(engine))


async def memory_part(
    context: ProviderContext, engine: memory.MemoryEngine, database: Database
) -> Part:
    """The memory provider over its state. Raises StartError where the start check refuses."""
    ledger = await _ledger(context, engine, database)
    return _part(Service.MEMORY, context, ledger, MemoryBooks(engine))


async def device_part(
    context: ProviderContext,
    engine: device.DeviceEngine,
    plugins: StaticPlugins,
    database: Database,
) -> Part:
    """The device provider over its state."""
    ledger = await _ledger(context, engine, database)
    started = time.monotonic()
    configured = context.settings.devices

    async def reload(settings: Settings) -> tuple[str, ...]:
        nonlocal configured
        if settings.devices == configured:
            return ()
        now = time.monotonic() - started
        engine.update_inventory(reloaded(engine.inventory, configured, settings.devices, now))
        plugins.configure(settings.devices)
        configured = settings.devices
        await ledger.facts_changed(engine.noted)
        return ("numalign.devices",)

    part = _part(Service.DEVICE, context, ledger, DeviceBooks(engine))
    return replace(part, reload=reload)


async def _ledger(context: ProviderContext, engine: Engine[S], database: Database) -> Ledger[S]:
    store = ProviderStore(database, engine.name, durable=context.durable)
    return await open_ledger(engine, store, context.strategies.cleanup(engine))


def _part(
    service: Service,
    context: ProviderContext,
    ledger: Ledger[S],
    books: Books[S],
) -> Part:
    servicer = HintProviderServicer(ledger, books, SilentObserver(), context.pods)
    return Part(
        service=service,
        registration=Registration(add_HintProviderServicer_to_server, servicer),
        health_name=HEALTH_NAME,
        reports=ledger.reports,
    )


def state_name(service: Service | None) -> str:
    """Name of the state file of a service; None: of all services in one process."""
    return "numalign" if service is None else service.value


def state_path(directory: Path, service: Service | None) -> Path:
    """Where that file is."""
    return directory / f"{state_name(service)}.db"
