"""The three built-in hint providers, each put together from its settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from numalign.config.settings import DeviceSource, MachineRoot, Service, Settings
from numalign.cpu import engine as cpu
from numalign.cpu.messages import CpuBooks
from numalign.cpu.observer import CpuObserver
from numalign.cpu.policy_static import StaticPolicy
from numalign.cpu.state import CpuState
from numalign.device import engine as device
from numalign.device.messages import DeviceBooks
from numalign.device.ports import DevicePlugins
from numalign.device.state import DeviceState
from numalign.device.timed_plugins import TimedPlugins
from numalign.errors import ConfigError, Unavailable
from numalign.machine.memory import free_huge_pages
from numalign.machine.tree import Tree
from numalign.memory import engine as memory
from numalign.memory.kernel_pages import KernelFree
from numalign.memory.machine_state import huge_page_resource
from numalign.memory.messages import MemoryBooks
from numalign.memory.observer import MemoryObserver
from numalign.memory.outside import outside_the_books
from numalign.memory.policy_kernel_pages import KernelCheck
from numalign.memory.policy_static import NAME as STATIC_MEMORY
from numalign.memory.state import MemoryState
from numalign.model.machine import Machine
from numalign.model.settings import KernelHugePages
from numalign.process.device_backends import DeviceBackend, device_backend
from numalign.process.generation import Generation
from numalign.process.part import Part
from numalign.process.provider_changes import Check, device_check, engine_check
from numalign.process.provider_context import ProviderContext
from numalign.process.traced_stores import provider_store
from numalign.provider.audience import Observer, SilentObserver
from numalign.provider.engine import Engine
from numalign.provider.ledger import Ledger
from numalign.provider.opening import open_ledger
from numalign.provider.servicer import HintProviderServicer
from numalign.rpc.methods import Registration
from numalign.store.database import Database
from numalign.telemetry.resource_manager import ResourceManagerCounters
from numalign.v1.hint_provider_pb2_grpc import add_HintProviderServicer_to_server

S = TypeVar("S")

HEALTH_NAME = "numalign.v1.HintProvider"


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
        switches=settings.placement.cpu,
    )


def build_memory_engine(context: ProviderContext) -> memory.MemoryEngine:
    """The memory engine. Raises StartError with the kubelet's text."""
    settings = context.settings
    strategies = replace(context.strategies.memory, directory=str(settings.state_directory))
    return memory.build_engine(
        settings.memory, context.machine, settings.gates, strategies, _kernel_check(context)
    )


def build_device_engine(context: ProviderContext) -> tuple[device.DeviceEngine, DeviceBackend]:
    """The device engine, and where its devices come from. Raises ConfigError."""
    if context.settings.device_plugins.mode is DeviceSource.OBSERVER:
        from numalign.device.observer import OddDevices  # noqa: PLC0415 - memory
        from numalign.process.kubelet_backend import KubeletBackend  # noqa: PLC0415 - memory

        kubelet = KubeletBackend(
            context.settings,
            context.machine,
            context.strategies.plugin_host.listed,
            context.strategies.device.health_of,
            OddDevices(context.metrics),
        )
        return kubelet.engine, kubelet
    backend = device_backend(
        context.settings, context.machine, context.strategies.plugin_host, context.metrics
    )
    plugins: DevicePlugins = backend.plugins
    if context.metrics.enabled:
        plugins = TimedPlugins(plugins, context.metrics)
    engine = device.build_engine(
        backend.inventory(),
        context.machine,
        context.settings.gates,
        plugins,
        backend.strategies(context.strategies.device),
    )
    return engine, backend


async def cpu_part(context: ProviderContext, engine: cpu.CpuEngine, database: Database) -> Part:
    """The CPU provider over its state. Raises StartError where the start check refuses."""
    ledger = await _ledger(context, engine, database)
    shares = _shares(context, engine.name)
    servicer = HintProviderServicer(
        ledger, CpuBooks(engine), _cpu_observer(context, engine, shares), context.pods
    )

    def build(now: ProviderContext) -> tuple[cpu.CpuEngine, Callable[[], None]]:
        engine = build_cpu_engine(now)

        def serve() -> None:
            servicer.serve(CpuBooks(engine), _cpu_observer(now, engine, shares))

        return engine, serve

    return await _part(
        Service.CPU,
        context,
        ledger,
        servicer,
        database,
        lambda generation: engine_check(
            context,
            ledger,
            generation,
            settings_of=cpu_settings,
            build=build,
        ),
    )


async def memory_part(
    context: ProviderContext, engine: memory.MemoryEngine, database: Database
) -> Part:
    """The memory provider over its state. Raises StartError where the start check refuses."""
    ledger = await _ledger(context, engine, database)
    shares = _shares(context, engine.name)
    servicer = HintProviderServicer(
        ledger, MemoryBooks(engine), _memory_observer(context, engine, shares), context.pods
    )

    def build(now: ProviderContext) -> tuple[memory.MemoryEngine, Callable[[], None]]:
        engine = build_memory_engine(now)

        def serve() -> None:
            servicer.serve(MemoryBooks(engine), _memory_observer(now, engine, shares))

        return engine, serve

    part = await _part(
        Service.MEMORY,
        context,
        ledger,
        servicer,
        database,
        lambda generation: engine_check(
            context,
            ledger,
            generation,
            settings_of=memory_settings,
            build=build,
        ),
    )
    source = context.settings.machine
    if not isinstance(source, MachineRoot):
        return part
    tree = Tree(source.path)

    def notices() -> tuple[str, ...]:
        try:
            free = _kernel_free(tree, context.machine)
        except ConfigError as error:
            return (f"not known whether huge pages are used outside the books: {error}",)
        return outside_the_books(ledger.state.machine, free)

    return replace(part, notices=notices)


async def device_part(
    context: ProviderContext,
    engine: device.DeviceEngine,
    backend: DeviceBackend,
    database: Database,
) -> Part:
    """The device provider over its state. Raises StartError."""
    ledger = await _ledger(context, engine, database)
    life = backend.attach(engine, ledger)
    books, observer = DeviceBooks(engine), SilentObserver[DeviceState]()
    servicer: HintProviderServicer[DeviceState]
    if life.look_at is None:
        servicer = HintProviderServicer(ledger, books, observer, context.pods, life.pre_start)
    else:
        from numalign.device.kubelet.servicer import LookingServicer  # noqa: PLC0415 - memory

        servicer = LookingServicer(ledger, books, observer, context.pods, life.look_at)
    part = await _part(
        Service.DEVICE,
        context,
        ledger,
        servicer,
        database,
        lambda generation: device_check(context, engine, life, generation),
    )
    return replace(part, serving=life.serving, close=life.close)


async def _ledger(context: ProviderContext, engine: Engine[S], database: Database) -> Ledger[S]:
    store = provider_store(database, engine.name, durable=context.durable)
    strategies = context.strategies
    return await open_ledger(
        engine,
        store,
        strategies.cleanup(engine),
        recorded=strategies.topology.trusts_record,
    )


async def _part(
    service: Service,
    context: ProviderContext,
    ledger: Ledger[S],
    servicer: HintProviderServicer[S],
    database: Database,
    check: Callable[[Generation], Check],
) -> Part:
    generation = await Generation.open(database, context.settings)
    return Part(
        service=service,
        registration=Registration(add_HintProviderServicer_to_server, servicer),
        health_name=HEALTH_NAME,
        reports=lambda: ledger.reports,
        check=check(generation),
        generation=lambda: generation.number,
    )


def _kernel_free(tree: Tree, machine: Machine) -> dict[tuple[int, str], int]:
    """The bytes of huge pages that the kernel has free, by NUMA node and resource."""
    return {
        (node.id, huge_page_resource(size)): count * size * 1024
        for node in machine.numa_nodes
        for size, count in free_huge_pages(tree, node.id, node.hugepages).items()
    }


def _kernel_check(context: ProviderContext) -> KernelCheck | None:
    """How the memory engine asks the kernel for its free huge pages; None: it does not."""
    settings = context.settings
    source, mode = settings.machine, settings.placement.kernel_huge_pages
    if mode is KernelHugePages.IGNORE or not isinstance(source, MachineRoot):
        return None
    tree = Tree(source.path)

    def ask() -> KernelFree:
        try:
            return _kernel_free(tree, context.machine)
        except ConfigError as error:
            raise Unavailable(f"the kernel's free huge pages cannot be read: {error}") from error

    return KernelCheck(ask, mode)


def cpu_settings(settings: Settings) -> dict[str, object]:
    """What the CPU engine is built from, by path."""
    return {
        "cpuManagerPolicy": settings.cpu,
        "topologyManagerPolicy": settings.topology,
        "featureGates": settings.gates,
        "numalign.placement": settings.placement,
    }


def memory_settings(settings: Settings) -> dict[str, object]:
    """What the memory engine is built from, by path."""
    return {
        "memoryManagerPolicy": settings.memory,
        "featureGates": settings.gates,
        "numalign.placement": settings.placement,
    }


def _cpu_observer(
    context: ProviderContext, engine: cpu.CpuEngine, shares: ResourceManagerCounters | None
) -> Observer[CpuState]:
    metrics = context.metrics
    if not metrics.enabled or not isinstance(engine.policy, StaticPolicy):
        return SilentObserver()
    gauges = context.strategies.cpu_gauges(engine, metrics)
    return CpuObserver(engine.policy.setup, metrics, gauges, shares)


def _memory_observer(
    context: ProviderContext, engine: memory.MemoryEngine, shares: ResourceManagerCounters | None
) -> Observer[MemoryState]:
    metrics = context.metrics
    if not metrics.enabled or engine.policy_name != STATIC_MEMORY:
        return SilentObserver()
    return MemoryObserver(context.settings.gates, metrics, shares)


def _shares(context: ProviderContext, resource: str) -> ResourceManagerCounters | None:
    if not context.settings.gates.pod_level_resource_managers:
        return None
    return ResourceManagerCounters(context.metrics, resource)
