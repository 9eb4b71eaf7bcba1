"""AppArmor, pod features, declared features and node shutdown."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.admission.handlers.admit_pods import CRITICAL, pod

from numalign.admission.handlers.app_armor import decide_app_armor
from numalign.admission.handlers.declared_features import decide_declared_features
from numalign.admission.handlers.node_shutdown import (
    GraceGroup,
    decide_node_shutdown,
    grace_groups,
    group_of,
)
from numalign.admission.handlers.pod_features import decide_pod_features

_PENDING = {"phase": "Pending"}
_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
_DISABLED = "Cannot enforce AppArmor: AppArmor is not enabled on the host"


def _profile(type_: str, name: str | None = None) -> dict[str, Any]:
    profile = {"type": type_} | ({} if name is None else {"localhostProfile": name})
    return {"securityContext": {"appArmorProfile": profile}}


def _annotated(**values: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {_ANNOTATION + k: v for k, v in values.items()}}}


@pytest.mark.parametrize(
    ("given", "host", "message"),
    [
        pytest.param(_profile("RuntimeDefault"), False, _DISABLED, id="needed"),
        pytest.param(_profile("RuntimeDefault"), True, "", id="enabled"),
        pytest.param(_profile("Unconfined"), False, "", id="unconfined-needs-none"),
        pytest.param(
            {"status": {}} | _profile("RuntimeDefault"), False, "", id="trap-31-empty-phase"
        ),
        pytest.param(
            {"status": {"phase": "Running"}} | _profile("RuntimeDefault"), False, "", id="running"
        ),
        pytest.param(_annotated(c="runtime/default"), False, _DISABLED, id="annotation"),
        pytest.param(
            _annotated(a="unconfined", c="runtime/default"), False, "", id="trap-32-first-by-name"
        ),
        pytest.param(
            _profile("Localhost"),
            True,
            "Cannot enforce AppArmor: invalid empty AppArmor profile name: "
            '"&AppArmorProfile{Type:Localhost,LocalhostProfile:nil,}"',
            id="no-name",
        ),
        pytest.param(
            _annotated(c="localhost/"),
            True,
            "Cannot enforce AppArmor: invalid empty AppArmor profile name: "
            '"&AppArmorProfile{Type:Localhost,LocalhostProfile:*,}"',
            id="empty-name",
        ),
        pytest.param(
            _profile("Localhost") | {"container": _profile("RuntimeDefault")},
            True,
            "",
            id="container-comes-first",
        ),
    ],
)
def test_app_armor(given: dict[str, Any], host: bool, message: str) -> None:
    """ARM-1 to ARM-5."""
    verdict = decide_app_armor(pod(**{"status": _PENDING} | given), host)

    assert (verdict.admit, verdict.message) == (not message, message)
    assert verdict.reason == ("AppArmor" if message else "")


@pytest.mark.parametrize(
    ("resources", "enabled", "system", "message"),
    [
        pytest.param({"requests": {"cpu": "1"}}, True, "linux", "", id="enabled"),
        pytest.param(
            {"requests": {"cpu": "1"}},
            False,
            "linux",
            "PodLevelResources feature gate is disabled",
            id="disabled",
        ),
        pytest.param({}, False, "linux", "", id="empty-section"),
        pytest.param(
            {"requests": {"example.com/x": "1"}}, False, "linux", "", id="unsupported-name"
        ),
        pytest.param(
            {"limits": {"memory": "1"}},
            True,
            "windows",
            "pod-level resources are not supported on Windows",
            id="windows",
        ),
        pytest.param(
            {"limits": {"memory": "1"}},
            True,
            "plan9",
            "pod-level resources are not supported on the node",
            id="elsewhere",
        ),
    ],
)
def test_pod_features(resources: dict[str, Any], enabled: bool, system: str, message: str) -> None:
    """FEAT-1."""
    verdict = decide_pod_features(pod(resources=resources), enabled, system)

    assert verdict.message == message
    assert verdict.reason == ("PodLevelResourcesNotSupported" if message else "")


_RESTART_ALL = {"restartPolicyRules": [{"action": "RestartAllContainers"}]}


@pytest.mark.parametrize(
    ("given", "declared", "missing"),
    [
        pytest.param({"hostNetwork": True}, (), "", id="host-users-by-default"),
        pytest.param(
            {"hostNetwork": True, "hostUsers": False},
            (),
            "UserNamespacesHostNetworkSupport",
            id="missing",
        ),
        pytest.param(
            {"hostNetwork": True, "hostUsers": False},
            ("UserNamespacesHostNetworkSupport",),
            "",
            id="declared",
        ),
        pytest.param(
            {"hostNetwork": True, "hostUsers": False, "container": _RESTART_ALL},
            ("Other",),
            "RestartAllContainersOnContainerExits, UserNamespacesHostNetworkSupport",
            id="sorted",
        ),
    ],
)
def test_declared_features(given: dict[str, Any], declared: tuple[str, ...], missing: str) -> None:
    """FEAT-2."""
    verdict = decide_declared_features(pod(**given), declared)

    assert verdict.admit is (not missing)
    assert (
        verdict.message.removeprefix("Pod requires node features that are not available: ")
        == missing
    )


@pytest.mark.parametrize(
    ("period", "critical", "by_priority", "groups"),
    [
        pytest.param(0, 0, (), (), id="off"),
        pytest.param(30, 10, (), ((0, 20), (CRITICAL, 10)), id="two-groups"),
        pytest.param(10, 30, (), (), id="negative-difference"),
        pytest.param(30, -1, (), (), id="negative-critical"),
        pytest.param(30, 10, ((5, 1), (-5, 2)), ((-5, 2), (5, 1)), id="by-priority"),
    ],
)
def test_grace_groups(
    period: float,
    critical: float,
    by_priority: tuple[tuple[int, float], ...],
    groups: tuple[tuple[int, float], ...],
) -> None:
    """SHUT-2."""
    made = grace_groups(period, critical, by_priority)

    assert made == tuple(GraceGroup(priority, grace) for priority, grace in groups)


def test_shutdown_rejects_everybody() -> None:
    """SHUT-1, trap 36: who the pod is does not even come in."""
    groups = grace_groups(30, 10, ())

    assert decide_node_shutdown(True, groups).message == (
        "Pod was rejected as the node is shutting down."
    )
    assert decide_node_shutdown(True, groups).reason == "NodeShutdown"
    assert decide_node_shutdown(False, groups).admit
    assert decide_node_shutdown(True, ()).admit


def test_a_pod_ends_with_the_group_below_its_priority() -> None:
    """SHUT-4."""
    groups = grace_groups(0, 0, ((-10, 0), (10, 5), (10, 6)))

    assert [group_of(p, groups) for p in (None, -20, 9, 10, 11)] == [0, 0, 0, 1, 2]
