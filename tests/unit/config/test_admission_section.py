"""The `admission` section, and the kubelet's keys that the chain reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from numalign.admission.chain.place import Place, Position
from numalign.admission.chain.version import ChainVersion
from numalign.admission.handlers.eviction_thresholds import LINUX_DEFAULTS
from numalign.admission.handlers.swap import SwapBehavior
from numalign.config.admission_chain import read_chain_keys
from numalign.config.settings import (
    AdmissionSettings,
    AdmitHandlerSettings,
    FailurePolicy,
    Settings,
    ShutdownSettings,
    ShutdownSource,
)
from numalign.document.problems import DocumentError

Read = Callable[[str], Settings]


def test_nothing_is_known_by_default(settings: Read) -> None:
    assert settings("").admission == AdmissionSettings()


def test_every_key(settings: Read) -> None:
    read = settings(
        "numalign: {admission: {chain: v1.31, node: node.yaml, declaredFeatures: [A, B],"
        " nodeFs: /pods, imageFs: /images,"
        " shutdown: {source: logind, bus: 'unix:path=/run/bus'}}}"
    )

    assert read.admission == AdmissionSettings(
        chain=ChainVersion.V1_31,
        node_file=Path("/etc/numalign/node.yaml"),
        declared_features=("A", "B"),
        node_fs=Path("/pods"),
        image_fs=Path("/images"),
        shutdown=ShutdownSettings(source=ShutdownSource.LOGIND, bus="unix:path=/run/bus"),
    )


def test_handlers_of_others(settings: Read) -> None:
    handlers = """
numalign:
  providerTimeout: 3s
  admission:
    handlers:
    - {name: quota, endpoint: "unix:/run/q.sock", replaces: predicates}
    - name: late
      endpoint: /run/l.sock
      after: predicates
      timeout: 500ms
      failurePolicy: Ignore
    - {name: last, endpoint: /run/z.sock}
"""

    assert settings(handlers).admission.handlers == (
        AdmitHandlerSettings(
            name="quota",
            socket=Path("/run/q.sock"),
            timeout=3.0,
            failure_policy=FailurePolicy.FAIL,
            place=Place(Position.REPLACES, "predicates"),
        ),
        AdmitHandlerSettings(
            name="late",
            socket=Path("/run/l.sock"),
            timeout=0.5,
            failure_policy=FailurePolicy.IGNORE,
            place=Place(Position.AFTER, "predicates"),
        ),
        AdmitHandlerSettings(
            name="last",
            socket=Path("/run/z.sock"),
            timeout=3.0,
            failure_policy=FailurePolicy.FAIL,
        ),
    )


@pytest.mark.parametrize(
    ("handler", "problem"),
    [
        pytest.param("{endpoint: /s}", "[0].name: must be given", id="no name"),
        pytest.param("{name: A, endpoint: /s}", "[0].name: must be lower case", id="odd name"),
        pytest.param("{name: sysctl, endpoint: /s}", '[0].name: "sysctl" is taken', id="own name"),
        pytest.param("{name: a}", "[0].endpoint: must be given", id="no socket"),
        pytest.param("{name: a, endpoint: s}", "[0].endpoint: must be the absolute", id="relative"),
        pytest.param("{name: a, endpoint: /s, timeout: 0s}", "[0].timeout: must be", id="no time"),
        pytest.param(
            "{name: a, endpoint: /s, failurePolicy: ignore}", "[0].failurePolicy", id="policy"
        ),
        pytest.param(
            "{name: a, endpoint: /s, before: sysctl, after: sysctl}",
            "[0].after: cannot be given together with before",
            id="two places",
        ),
        pytest.param(
            "{name: a, endpoint: /s, after: sysctls}",
            '[0].after: there is no handler "sysctls"; there are resize-feasibility, eviction,',
            id="no such place",
        ),
        pytest.param(
            "{name: a, endpoint: /s, replaces: topology-manager}",
            "[0].replaces: topology-manager allocates",
            id="the Topology Manager",
        ),
        pytest.param("{name: a, endpoint: /s, socket: /s}", "[0].socket: unknown key", id="key"),
        pytest.param("null", "[0]: must be a mapping, not null", id="null"),
    ],
)
def test_what_is_wrong_with_a_handler_is_named(settings: Read, handler: str, problem: str) -> None:
    with pytest.raises(DocumentError) as refused:
        settings(f"numalign: {{admission: {{handlers: [{handler}]}}}}")

    assert f"numalign.admission.handlers{problem}" in str(refused.value)


def test_the_chain_of_a_version_decides_who_is_there(settings: Read) -> None:
    """ADM-2: v1.31 has no handler for pod features."""
    handler = "handlers: [{name: a, endpoint: /s, before: pod-features}]"

    assert settings(f"numalign: {{admission: {{{handler}}}}}").admission.handlers
    with pytest.raises(DocumentError, match='no handler "pod-features"'):
        settings(f"numalign: {{admission: {{chain: v1.31, {handler}}}}}")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("{chain: v1.30}", "numalign.admission.chain", id="version"),
        pytest.param("{nodeFs: pods}", "numalign.admission.nodeFs", id="relative"),
        pytest.param(
            "{declaredFeatures: [1]}", "numalign.admission.declaredFeatures[0]", id="text"
        ),
        pytest.param("{nodes: a}", "numalign.admission.nodes", id="unknown"),
        pytest.param("{node: ''}", "numalign.admission.node", id="no-file"),
        pytest.param("{shutdown: {source: d}}", "numalign.admission.shutdown.source", id="source"),
        pytest.param("{shutdown: {bus: /a}}", "numalign.admission.shutdown.bus", id="address"),
        pytest.param("{shutdown: {bus: ''}}", "numalign.admission.shutdown.bus", id="no-address"),
        pytest.param("{shutdown: logind}", "numalign.admission.shutdown", id="mapping"),
    ],
)
def test_what_is_wrong_is_named(settings: Read, text: str, problem: str) -> None:
    with pytest.raises(DocumentError) as refused:
        settings(f"numalign: {{admission: {text}}}")

    assert problem in str(refused.value)


def test_defaults_of_the_kubelet() -> None:
    """EVI-9, EVI-12, SHUT-2."""
    keys = read_chain_keys({})

    assert keys.eviction.hard == LINUX_DEFAULTS
    assert list(keys.eviction.enforce_node_allocatable) == ["pods"]
    assert keys.transition_period == 300
    assert keys.shutdown_grace_period == 0


@pytest.mark.parametrize(
    ("hard", "merge", "signals"),
    [
        pytest.param({}, False, 0, id="empty-is-none"),
        pytest.param({"memory.available": "1Gi"}, False, 1, id="own-only"),
        pytest.param({"memory.available": "1Gi"}, True, len(LINUX_DEFAULTS), id="merged"),
    ],
)
def test_hard_thresholds(hard: dict[str, str], merge: bool, signals: int) -> None:
    """EVI-9."""
    keys = read_chain_keys({"evictionHard": hard, "mergeDefaultEvictionSettings": merge})

    assert len(keys.eviction.hard or {}) == signals


def test_keys_of_the_kubelet() -> None:
    document: dict[str, Any] = {
        "evictionPressureTransitionPeriod": "1m",
        "allowedUnsafeSysctls": ["net.*"],
        "shutdownGracePeriod": "30s",
        "shutdownGracePeriodCriticalPods": "10s",
        "shutdownGracePeriodByPodPriority": [{"priority": 5, "shutdownGracePeriodSeconds": 7}],
        "memorySwap": {"swapBehavior": "LimitedSwap"},
    }
    keys = read_chain_keys(document)

    assert keys.transition_period == 60
    assert keys.allowed_unsafe_sysctls == ("net.*",)
    assert (keys.shutdown_grace_period, keys.shutdown_grace_period_critical_pods) == (30, 10)
    assert keys.shutdown_grace_period_by_pod_priority == ((5, 7.0),)
    assert keys.swap_behavior is SwapBehavior.LIMITED


@pytest.mark.parametrize("memory_swap", [None, {}, {"swapBehavior": ""}])
def test_nothing_swaps_by_default(memory_swap: dict[str, str] | None) -> None:
    assert read_chain_keys({"memorySwap": memory_swap}).swap_behavior is SwapBehavior.NONE


def test_an_unknown_way_to_swap_is_named() -> None:
    with pytest.raises(DocumentError, match=r'memorySwap\.swapBehavior: must be one of "NoSwap"'):
        read_chain_keys({"memorySwap": {"swapBehavior": "UnlimitedSwap"}})


def test_a_wrong_key_is_named() -> None:
    with pytest.raises(DocumentError, match="shutdownGracePeriod"):
        read_chain_keys({"shutdownGracePeriod": "soon"})
