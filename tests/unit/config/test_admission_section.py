"""The `admission` section, and the kubelet's keys that the chain reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from numalign.admission.chain.version import ChainVersion
from numalign.admission.handlers.eviction_thresholds import LINUX_DEFAULTS
from numalign.config.admission_chain import read_chain_keys
from numalign.config.settings import AdmissionSettings, Settings
from numalign.document.problems import DocumentError

Read = Callable[[str], Settings]


def test_nothing_is_known_by_default(settings: Read) -> None:
    assert settings("").admission == AdmissionSettings()


def test_every_key(settings: Read) -> None:
    read = settings(
        "numalign: {admission: {chain: v1.31, node: node.yaml, declaredFeatures: [A, B],"
        " nodeFs: /pods, imageFs: /images}}"
    )

    assert read.admission == AdmissionSettings(
        chain=ChainVersion.V1_31,
        node_file=Path("/etc/numalign/node.yaml"),
        declared_features=("A", "B"),
        node_fs=Path("/pods"),
        image_fs=Path("/images"),
    )


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
    }
    keys = read_chain_keys(document)

    assert keys.transition_period == 60
    assert keys.allowed_unsafe_sysctls == ("net.*",)
    assert (keys.shutdown_grace_period, keys.shutdown_grace_period_critical_pods) == (30, 10)
    assert keys.shutdown_grace_period_by_pod_priority == ((5, 7.0),)


def test_a_wrong_key_is_named() -> None:
    with pytest.raises(DocumentError, match="shutdownGracePeriod"):
        read_chain_keys({"shutdownGracePeriod": "soon"})
