"""The Topology Manager, put together from its settings and its providers' channels."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path

from grpc import aio

from numalign.config.settings import Service
from numalign.plugins.watcher import PluginWatcher
from numalign.process.boot import boot_id
from numalign.process.generation import Generation
from numalign.process.part import Part
from numalign.process.record_number import new_record
from numalign.process.settle_loop import settle_whenever_needed
from numalign.process.topology_changes import TopologyNode, deciding_parts
from numalign.process.topology_context import TopologyContext
from numalign.process.traced_stores import admission_store
from numalign.process.watched_directory import make_watched
from numalign.process.watched_providers import HintProviderHandler, watch_providers
from numalign.rpc.channel import call_stream_of
from numalign.rpc.endpoint import provider_socket
from numalign.rpc.methods import Registration
from numalign.rpc.timed_channel import TimedChannel
from numalign.store.database import Database
from numalign.store.node_facts import NodeFacts
from numalign.store.registered_providers import RegisteredProviders
from numalign.telemetry.metrics import Metrics
from numalign.topology.construct import TopologyDecider
from numalign.topology.hint_store import HintStore
from numalign.topology.manager import TopologyManager, restore_hints
from numalign.topology.picture import Picture
from numalign.topology.provider_handle import ProviderHandle
from numalign.topology.records import Records
from numalign.topology.registrations import Registrations
from numalign.topology.registry import ProviderRegistry, WatchListener
from numalign.topology.servicer import TopologyManagerServicer
from numalign.topology.settlement import Settlement
from numalign.topology.turnstile import Turnstile
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import hint_provider_pb2_grpc as hp_grpc
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import types_pb2 as pb
from numalign.v1.dynamic_resources_pb2_grpc import DynamicResourcesStub
from numalign.v1.topology_pb2_grpc import add_TopologyManagerServicer_to_server

HEALTH_NAME = "numalign.v1.TopologyManager"

PROVIDER_ORDER = (Service.DEVICE, Service.CPU, Service.MEMORY)
"""The order in which built-in providers are asked (TM-18)."""


_UP = "numalign_provider_up"

FOUND_SECONDS = 2.0
"""How long providers that are found by their sockets may take before it counts as ready."""

Connect = Callable[[Path], aio.Channel]
"""Opens a channel to a socket."""


async def topology_part(
    context: TopologyContext,
    decider: TopologyDecider,
    database: Database,
    channels: Mapping[Service, aio.Channel],
    connect: Connect,
) -> Part:
    """The Topology Manager over its record.

    `channels` leads to the built-in providers, `connect` to third parties.
    """
    settings, strategies = context.settings, context.strategies.topology
    store = admission_store(database)
    records = Records(store, await store.begin(new_record()), settings.history_length)
    hints = HintStore()
    if strategies.trusts_record:
        restore_hints(hints, records)
    registry = ProviderRegistry(
        _handles(context, channels, connect),
        _told_to(records),
        _shown_in(context.metrics),
        left=lambda handle: context.metrics.gauge(_UP).remove(handle.name),
    )
    turnstile = Turnstile(settings.queue_depth)
    generation = await Generation.open(database, settings)
    facts = NodeFacts(database)
    picture = Picture(
        recorded=(admitted.pod_uid for admitted in records.all()),
        waits_for_sources=strategies.waits_for_sources,
    )
    settlement = Settlement(
        records=records,
        picture=picture,
        pods=context.pods,
        whole=await facts.record_is_whole(),
        note_whole=facts.note_whole_record,
        trusted=strategies.trusts_record,
        config_generation=generation.number,
    )
    manager = TopologyManager(
        parts=deciding_parts(decider, settings, generation.number),
        records=records,
        hints=hints,
        picture=picture,
        registry=registry,
        turnstile=turnstile,
        strategies=strategies,
        settlement=settlement,
        pods=context.pods,
        claim_nodes=context.machine.node_ids() if settings.dra.numa_hints else (),
        dynamic_resources=DynamicResourcesStub(channels[Service.DRA])
        if settings.dra.enabled
        else None,
    )
    node = TopologyNode(
        manager=manager,
        records=records,
        registry=registry,
        turnstile=turnstile,
        generation=generation,
    )
    telling = node.telling(context, decider)

    def third_party(request: tm.RegisterHintProviderRequest) -> ProviderHandle:
        return _third_party(request, node.provider_timeout, context, connect)

    registrations = Registrations(
        registry,
        turnstile,
        RegisteredProviders(database, boot_id(Service.TOPOLOGY.value)),
        third_party,
    )
    servicer = TopologyManagerServicer(
        manager=manager,
        records=records,
        registry=registry,
        facts=telling.facts,
        registrations=registrations,
        observer=telling.observer,
        pods=context.pods,
        default_owner=settings.owner,
        resources=telling.resources,
    )
    node.serve(context, decider, servicer)
    await registrations.recall()
    if settings.providers_registry is not None:
        make_watched(settings.providers_registry, Service.TOPOLOGY.value)
    settling: set[asyncio.Task[None]] = set()
    settled = asyncio.Event()
    found: list[PluginWatcher] = []

    async def serving() -> None:
        registry.watch_all()
        settling.add(
            asyncio.ensure_future(settle_whenever_needed(manager.settle, registry, settled))
        )
        settling.add(asyncio.ensure_future(manager.claims.follow()))
        if settings.providers_registry is not None:
            handler = HintProviderHandler(registrations.register)
            watching = watch_providers(settings.providers_registry, handler)
            watching.look()
            found.append(watching)
            settling.add(asyncio.ensure_future(watching.run()))

    async def ready() -> None:
        await settled.wait()
        with contextlib.suppress(TimeoutError):
            # Those whose sockets are there, unless one does not answer.
            async with asyncio.timeout(FOUND_SECONDS):
                for watching in found:
                    await watching.idle()

    async def close() -> None:
        for task in settling:
            task.cancel()
        await asyncio.gather(*settling, return_exceptions=True)
        await registry.close()

    return Part(
        service=Service.TOPOLOGY,
        registration=Registration(add_TopologyManagerServicer_to_server, servicer),
        health_name=HEALTH_NAME,
        serving=serving,
        ready=ready,
        close=close,
        reports=settlement.reports,
        check=node.check,
        turn=manager.reconfiguring,
        generation=lambda: generation.number,
    )


def _told_to(records: Records) -> WatchListener:
    """What providers tell between calls, as far as those who watch the record are to hear it."""

    async def told(handle: ProviderHandle, event: hp.WatchResponse) -> None:
        if event.HasField("shared_cpus"):
            await records.share(event.shared_cpus)
        if handle.built_in and event.HasField("unhealthy_devices"):
            records.note_health(event.unhealthy_devices)

    return told


def _shown_in(metrics: Metrics) -> Callable[[ProviderHandle], None]:
    """What shows whether providers answer."""
    gauge = metrics.gauge(_UP)

    def show(handle: ProviderHandle) -> None:
        gauge.labels(handle.name).set_function(lambda: float(not handle.last_error))

    return show


def _handles(
    context: TopologyContext, channels: Mapping[Service, aio.Channel], connect: Connect
) -> list[ProviderHandle]:
    settings = context.settings
    built_in = [
        ProviderHandle(
            name=service.value,
            endpoint=f"unix://{settings.endpoints[service]}",
            stub=_stub(channels[service], service.value, context.metrics),
            timeout=settings.provider_timeout,
            built_in=True,
            call_stream=call_stream_of(channels[service]),
        )
        for service in PROVIDER_ORDER
    ]
    third_party = [
        ProviderHandle(
            name=provider.name,
            endpoint=f"unix://{provider.socket}",
            stub=_stub(channel, provider.name, context.metrics),
            timeout=provider.timeout,
            built_in=False,
            call_stream=call_stream_of(channel),
            failure_policy=pb.FailurePolicy.Value(
                f"FAILURE_POLICY_{provider.failure_policy.value.upper()}"
            ),
        )
        for provider in settings.providers
        for channel in (connect(provider.socket),)
    ]
    return built_in + third_party


def _third_party(
    request: tm.RegisterHintProviderRequest,
    timeout: float,
    context: TopologyContext,
    connect: Connect,
) -> ProviderHandle:
    if request.HasField("timeout"):
        timeout = request.timeout.ToTimedelta().total_seconds()
    settings = context.settings
    directories = [settings.runtime_directory, *settings.provider_directories]
    if settings.providers_registry is not None:
        directories.append(settings.providers_registry)
    path = provider_socket(request.endpoint, directories)
    channel = connect(path)
    return ProviderHandle(
        name=request.name,
        endpoint=f"unix://{path}",
        stub=_stub(channel, request.name, context.metrics),
        call_stream=call_stream_of(channel),
        timeout=timeout,
        built_in=False,
        failure_policy=request.failure_policy or pb.FAILURE_POLICY_FAIL,
    )


def _stub(channel: aio.Channel, provider: str, metrics: Metrics) -> hp_grpc.HintProviderAsyncStub:
    if metrics.enabled:
        seconds = metrics.histogram("numalign_provider_call_duration_seconds")
        channel = TimedChannel(channel, lambda method: seconds.labels(provider, method).observe)
    return hp_grpc.HintProviderStub(channel)
