"""The chain of admit handlers, put together from the settings and the host.

Separate from the rest of the Admission service, which runs without it where nobody tells what
the Node object says.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TypeAlias

from numalign.admission.admit_chain import AdmitChain, ChainPlan
from numalign.admission.chain.built_in import (
    ChainSettings,
    built_in_chain,
    resizing_nothing,
)
from numalign.admission.chain.place import Place
from numalign.admission.chain.placement import with_others
from numalign.admission.chain.question import Handler
from numalign.admission.chain.version import ChainVersion
from numalign.admission.handlers.allocation import resize_gates
from numalign.admission.handlers.eviction_thresholds import parse_thresholds
from numalign.admission.handlers.node_shutdown import GraceGroup
from numalign.admission.handlers.resize_feasibility import ResizeFacts
from numalign.admission.handlers.swap import swap_behavior
from numalign.admission.handlers.sysctl import allowlist, safe_sysctls
from numalign.admission.node_file import NodeFile
from numalign.admission.node_state import NodeState, Pressure
from numalign.admission.pod_resources.mirror import AdmissionMirror
from numalign.admission.traced_handlers import traced_chain
from numalign.config.admission_chain import ChainKeys, read_chain_keys
from numalign.config.settings import Settings
from numalign.machine.host_security import app_armor_enabled, can_limit_swap, kernel_version
from numalign.machine.node_stats import read_node_stats
from numalign.process.compatibility import strategies_of
from numalign.telemetry.tracing import active_tracer
from numalign.v1 import topology_pb2_grpc as tm_grpc

OthersStep: TypeAlias = tuple[Handler, Place | None]
"""A handler of somebody else, and its place; None: the last one."""

_SINCE_4_15 = frozenset({"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"})
"""Safe names that v1.31 does not have (SYS-1)."""


def plan_of(settings: Settings, others: Iterable[OthersStep] = ()) -> ChainPlan:
    """Who decides as the settings say; `others` are handlers of others, with their places.

    Raises ConfigError for sysctls or grace periods that cannot be used.
    """
    version = settings.admission.chain
    told = _chain_settings(settings, read_chain_keys(settings.kubelet))
    additions = with_others(built_in_chain(told, version), others)
    tracer = active_tracer()
    if tracer is not None:
        additions = traced_chain(additions, tracer)
    return ChainPlan(
        additions=additions,
        resizes=resizing_nothing(told) if version is ChainVersion.V1_31 else additions,
        resize=told.resize,
        gates=settings.gates,
    )


def pressure_of(settings: Settings) -> Pressure:
    """How pressure is measured. Raises ConfigError for thresholds that cannot be used."""
    keys = read_chain_keys(settings.kubelet)
    wanted, root = settings.admission, settings.host_root
    return Pressure(
        thresholds=parse_thresholds(keys.eviction),
        transition_period=keys.transition_period,
        read_stats=lambda: read_node_stats(root, wanted.node_fs, wanted.image_fs),
        dedicated_image_fs=wanted.image_fs is not None,
    )


def node_file_of(settings: Settings) -> NodeFile | None:
    """The file with the Node object, if there is to be one. Raises ConfigError."""
    path = settings.admission.node_file
    return None if path is None else NodeFile(path)


def grace_groups_of(settings: Settings) -> tuple[GraceGroup, ...]:
    """The groups in which pods end when the node shuts down; none: pods go on (SHUT-2)."""
    return read_chain_keys(settings.kubelet).grace_groups


def open_chain(
    settings: Settings, topology: tm_grpc.TopologyManagerAsyncStub, others: Iterable[OthersStep]
) -> AdmitChain:
    """The chain that the settings describe. Raises ConfigError as the parts of it do."""
    return AdmitChain(
        plan_of(settings, others),
        strategies_of(settings.compatibility).chain,
        NodeState(pressure_of(settings), time.monotonic, node_file_of(settings)),
        AdmissionMirror(topology, with_pods=True),
    )


def _chain_settings(settings: Settings, keys: ChainKeys) -> ChainSettings:
    safe = safe_sysctls(kernel_version(settings.host_root))
    if settings.admission.chain is ChainVersion.V1_31:
        safe = tuple(name for name in safe if name not in _SINCE_4_15)
    return ChainSettings(
        resize_facts=ResizeFacts(
            cpu_manager_policy=settings.cpu.policy,
            memory_manager_policy=settings.memory.policy,
            swap_behavior=swap_behavior(
                keys.swap_behavior, can_limit_swap(settings.host_root), settings.gates
            ),
        ),
        gates=settings.gates,
        resize=resize_gates(settings.gates),
        sysctls=allowlist((*safe, *keys.allowed_unsafe_sysctls)),
        app_armor_enabled=app_armor_enabled(settings.host_root),
        declared_features=frozenset(settings.admission.declared_features),
        grace_groups=keys.grace_groups,
    )
