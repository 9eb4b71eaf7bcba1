"""The chain of admit handlers, put together from the settings and the host.

Separate from the rest of the Admission service, which runs without it where nobody tells what
the Node object says.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from numalign.admission.admit_chain import AdmitChain
from numalign.admission.chain.built_in import (
    ChainSettings,
    built_in_chain,
    resizing_nothing,
)
from numalign.admission.chain.place import Place
from numalign.admission.chain.placement import with_others
from numalign.admission.chain.question import Handler
from numalign.admission.chain.version import ChainVersion
from numalign.admission.handlers.allocation import ResizeGates, resize_gates
from numalign.admission.handlers.eviction_thresholds import parse_thresholds
from numalign.admission.handlers.node_shutdown import grace_groups
from numalign.admission.handlers.node_view import NodeView
from numalign.admission.handlers.resize_feasibility import ResizeFacts
from numalign.admission.handlers.swap import swap_behavior
from numalign.admission.handlers.sysctl import allowlist, safe_sysctls
from numalign.admission.node_state import NodeState
from numalign.admission.pod_messages import node_view
from numalign.admission.pod_resources.mirror import AdmissionMirror
from numalign.config.admission_chain import ChainKeys, read_chain_keys
from numalign.config.settings import Settings
from numalign.document.text import read_document
from numalign.errors import ConfigError, InvalidInput
from numalign.kube.pod_json import node_from_json
from numalign.machine.host_security import app_armor_enabled, can_limit_swap, kernel_version
from numalign.machine.node_stats import read_node_stats
from numalign.process.compatibility import strategies_of
from numalign.v1 import topology_pb2_grpc as tm_grpc

OthersStep: TypeAlias = tuple[Handler, Place | None]
"""A handler of somebody else, and its place; None: the last one."""

_SINCE_4_15 = frozenset({"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"})
"""Safe names that v1.31 does not have (SYS-1)."""


def open_chain(
    settings: Settings, topology: tm_grpc.TopologyManagerAsyncStub, others: Iterable[OthersStep]
) -> AdmitChain:
    """The chain that the settings describe, with the Node object of the file if there is one.

    `others` are handlers of others, with their places. Raises ConfigError for thresholds,
    sysctls, grace periods or a Node that cannot be used.
    """
    keys = read_chain_keys(settings.kubelet)
    wanted = settings.admission
    node = NodeState(
        parse_thresholds(keys.eviction),
        keys.transition_period,
        lambda: read_node_stats(settings.host_root, wanted.node_fs, wanted.image_fs),
        time.monotonic,
        dedicated_image_fs=wanted.image_fs is not None,
    )
    if wanted.node_file is not None:
        node.set_node(*_read_node(wanted.node_file))
    resize = resize_gates(settings.gates)
    told = _chain_settings(settings, keys, resize)
    chain = with_others(built_in_chain(told, wanted.chain), others)
    return AdmitChain(
        chain,
        resizing_nothing(told) if wanted.chain is ChainVersion.V1_31 else chain,
        strategies_of(settings.compatibility).chain,
        node,
        AdmissionMirror(topology, with_pods=True),
        resize,
        settings.gates,
    )


def _chain_settings(settings: Settings, keys: ChainKeys, resize: ResizeGates) -> ChainSettings:
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
        resize=resize,
        sysctls=allowlist((*safe, *keys.allowed_unsafe_sysctls)),
        app_armor_enabled=app_armor_enabled(settings.host_root),
        declared_features=frozenset(settings.admission.declared_features),
        grace_groups=grace_groups(
            keys.shutdown_grace_period,
            keys.shutdown_grace_period_critical_pods,
            keys.shutdown_grace_period_by_pod_priority,
        ),
    )


def _read_node(path: Path) -> tuple[NodeView, bytes]:
    """The Node object in a file, as the predicates see it and serialised."""
    document = read_document(path)
    if not isinstance(document, Mapping):
        raise ConfigError(f"{path}: is no Node object")
    try:
        node = node_from_json(document)
        return node_view(node), node.SerializeToString()
    except InvalidInput as error:
        raise ConfigError(f"{path}: {error}") from error
