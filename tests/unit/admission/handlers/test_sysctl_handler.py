"""The sysctl allowlist: names, patterns, namespaces, and the verdict on a pod."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.admission.handlers.admit_pods import pod

from numalign.admission.handlers.sysctl import (
    allowlist,
    decide_sysctls,
    normalised,
    safe_sysctls,
)
from numalign.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("kernel.sem", "kernel.sem", id="dots-stay"),
        pytest.param("kernel", "kernel", id="neither"),
        pytest.param("net/ipv4/tcp_syncookies", "net.ipv4.tcp_syncookies", id="slashes"),
        pytest.param(
            "net/ipv4/conf/eth0.100/rp_filter", "net.ipv4.conf.eth0/100.rp_filter", id="swapped"
        ),
        pytest.param("net.ipv4/x", "net.ipv4/x", id="dot-comes-first"),
    ],
)
def test_names_are_normalised(name: str, expected: str) -> None:
    """SYS-2."""
    assert normalised(name) == expected


@pytest.mark.parametrize(
    ("version", "name", "is_safe"),
    [
        pytest.param("6.8.0", "net.ipv4.tcp_wmem", True, id="new"),
        pytest.param("4.15", "net.ipv4.tcp_rmem", True, id="just-new-enough"),
        pytest.param("4.14.9", "net.ipv4.tcp_rmem", False, id="too-old"),
        pytest.param(None, "net.ipv4.ip_local_reserved_ports", False, id="unreadable"),
        pytest.param(None, "net.ipv4.tcp_syncookies", True, id="needs-no-version"),
    ],
)
def test_safe_names_depend_on_the_kernel(version: str | None, name: str, is_safe: bool) -> None:
    """SYS-1."""
    assert (name in safe_sysctls(version)) is is_safe


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        pytest.param("net*", 'the sysctls "net" are not known to be namespaced', id="trap-11"),
        pytest.param(
            "vm.max", 'the sysctls "vm.max" are not known to be namespaced', id="no-space"
        ),
        pytest.param("Net.x", 'sysctl "Net.x" must have at most 253 characters', id="upper-case"),
        pytest.param("net." + "a" * 250, "must have at most 253 characters", id="too-long"),
    ],
)
def test_a_bad_entry_stops_the_start(entry: str, error: str) -> None:
    """SYS-3, SYS-4, DES-7."""
    with pytest.raises(ConfigError) as refused:
        allowlist((entry,))

    assert error in str(refused.value)


@pytest.mark.parametrize(
    ("names", "spec", "message"),
    [
        pytest.param([], {}, "", id="none"),
        pytest.param(["net/ipv4/tcp_syncookies"], {}, "", id="trap-10-slashes"),
        pytest.param(
            ["kernel.sem"], {}, 'forbidden sysctl: "kernel.sem" not allowlisted', id="unknown"
        ),
        pytest.param(["net.core.somaxconn"], {}, "", id="by-prefix"),
        pytest.param(
            ["net.core.somaxconn"],
            {"hostNetwork": True},
            'forbidden sysctl: "net.core.somaxconn" not allowed with host Net enabled',
            id="trap-12-host-network",
        ),
        pytest.param(
            ["kernel.shm_rmid_forced"],
            {"hostIPC": True},
            'forbidden sysctl: "kernel.shm_rmid_forced" not allowed with host IPC enabled',
            id="host-ipc",
        ),
        pytest.param(
            ["kernel.a", "kernel.b"],
            {},
            'forbidden sysctl: "kernel.a" not allowlisted',
            id="first-error-wins",
        ),
    ],
)
def test_verdict(names: list[str], spec: dict[str, Any], message: str) -> None:
    """SYS-5, SYS-6."""
    allowed = allowlist((*safe_sysctls("6.8.0"), "net.*"))
    sysctls = [{"name": name, "value": "1"} for name in names]
    verdict = decide_sysctls(pod(securityContext={"sysctls": sysctls}, **spec), allowed)

    assert (verdict.admit, verdict.message) == (not message, message)
    assert verdict.reason == ("SysctlForbidden" if message else "")
