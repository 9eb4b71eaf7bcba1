"""The Topology Manager, put together from its settings and its providers' channels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from grpc import aio

from numalign.config.settings import Service, Settings
from numalign.model.machine import Machine
from numalign.process.compatibility import Strategies
from numalign.process.part import Part
from numalign.provider.pod_cache import PodCache
from numalign.rpc.methods import Registration
from numalign.store.admission_store import AdmissionStore
from numalign.store.database import Database
from numalign.topology.construct import TopologyDecider, build_policy
from numalign.topology.explainer import Explainer
from numalign.topology.hint_store import HintStore
from numalign.topology.manager import TopologyManager, restore_hints
from numalign.topology.picture import Picture
from numalign.topology.provider_handle import ProviderHandle
from numalign.topology.records import Records
from numalign.topology.registry import ProviderRegistry
from numalign.topology.servicer import AdmissionObserver, PolicyFacts, TopologyManagerServicer
from numalign.topology.turnstile import Turnstile
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import types_pb2 as pb
from numalign.v1.hint_provider_pb2_grpc import HintProviderStub
from numalign.v1.topology_pb2_grpc import add_TopologyManagerServicer_to_server

HEALTH_NAME = "numalign.v1.TopologyManager"

PROVIDER_ORDER = (Service.DEVICE, Service.CPU, Service.MEMORY)
"""The order in which built-in providers are asked (TM-18)."""

Connect = Callable[[Path], aio.Channel]
"""Opens a channel to a socket."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyContext:
    """What the Topology Manager is built from."""

    settings: Settings
    machine: Machine
    strategies: Strategies
    pods: PodCache


def build_decider(context: TopologyContext) -> TopologyDecider:
    """Policy and scope. Raises StartError with the kubelet's text."""
    settings = context.settings
    return build_policy(
        settings.topology, context.machine, settings.gates, context.strategies.node_limit
    )


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
    store = AdmissionStore(database)
    records = Records(store, await store.load_all(), settings.history_length)
    hints = HintStore()
    if strategies.trusts_record:
        restore_hints(hints, records)
    registry = ProviderRegistry(_handles(settings, channels, connect), records.share)
    manager = TopologyManager(
        scope=decider.scope,
        gates=settings.gates,
        records=records,
        hints=hints,
        picture=Picture(
            recorded=(admitted.pod_uid for admitted in records.all()),
            waits_for_sources=strategies.waits_for_sources,
        ),
        registry=registry,
        turnstile=Turnstile(settings.queue_depth),
        strategies=strategies,
        explainer=Explainer(decider.policy, decider.numa, decider.scope.name),
        config_generation=1,
        pods=context.pods,
    )
    servicer = TopologyManagerServicer(
        manager=manager,
        records=records,
        registry=registry,
        facts=PolicyFacts(
            policy=settings.topology.policy,
            scope=decider.scope.name,
            options=settings.topology.policy_options,
            numa_nodes=context.machine.node_ids(),
            compatibility=settings.compatibility.value,
            config_generation=1,
        ),
        third_party=lambda request: _third_party(request, settings.provider_timeout, connect),
        observer=AdmissionObserver(),
        pods=context.pods,
        default_owner=settings.owner,
    )

    async def serving() -> None:
        registry.watch_all()

    return Part(
        service=Service.TOPOLOGY,
        registration=Registration(add_TopologyManagerServicer_to_server, servicer),
        health_name=HEALTH_NAME,
        serving=serving,
        close=registry.close,
    )


def _handles(
    settings: Settings, channels: Mapping[Service, aio.Channel], connect: Connect
) -> list[ProviderHandle]:
    built_in = [
        ProviderHandle(
            name=service.value,
            endpoint=f"unix://{settings.endpoints[service]}",
            stub=HintProviderStub(channels[service]),
            timeout=settings.provider_timeout,
            built_in=True,
        )
        for service in PROVIDER_ORDER
    ]
    third_party = [
        ProviderHandle(
            name=provider.name,
            endpoint=f"unix://{provider.socket}",
            stub=HintProviderStub(connect(provider.socket)),
            timeout=provider.timeout,
            built_in=False,
            failure_policy=pb.FailurePolicy.Value(
                f"FAILURE_POLICY_{provider.failure_policy.value.upper()}"
            ),
        )
        for provider in settings.providers
    ]
    return built_in + third_party


def _third_party(
    request: tm.RegisterHintProviderRequest, default_timeout: float, connect: Connect
) -> ProviderHandle:
    timeout = default_timeout
    if request.HasField("timeout"):
        timeout = request.timeout.ToTimedelta().total_seconds()
    path = Path(request.endpoint.removeprefix("unix://").removeprefix("unix:"))
    return ProviderHandle(
        name=request.name,
        endpoint=f"unix://{path}",
        stub=HintProviderStub(connect(path)),
        timeout=timeout,
        built_in=False,
        failure_policy=request.failure_policy or pb.FAILURE_POLICY_FAIL,
    )
