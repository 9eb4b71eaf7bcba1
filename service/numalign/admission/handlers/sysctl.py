"""The sysctl allowlist handler (SYS-1 to SYS-6).

The list is made once, at start, and refuses bad entries there (DES-7); a pod is then checked
against it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.verdict import ADMITTED, Verdict, rejected
from numalign.errors import ConfigError
from numalign.model.quoting import quoted

REASON = "SysctlForbidden"

_IPC, _NET = "IPC", "Net"
_PATTERN = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]"
_ENTRY = re.compile(_PATTERN, re.ASCII)
_LONGEST_ENTRY = 253
_SWAPPED = str.maketrans("/.", "./")
_IPC_NAMES = frozenset(
    {
        "kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced",
        "kernel.shm", "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.msg",
    }
)  # fmt: skip
_IPC_PREFIX = "fs.mqueue."
_NET_PREFIX = "net."
_SAFE: tuple[tuple[str, tuple[int, int] | None], ...] = (
    ("kernel.shm_rmid_forced", None),
    ("net.ipv4.ip_local_port_range", None),
    ("net.ipv4.tcp_syncookies", None),
    ("net.ipv4.ping_group_range", None),
    ("net.ipv4.ip_unprivileged_port_start", None),
    ("net.ipv4.ip_local_reserved_ports", (3, 16)),
    ("net.ipv4.tcp_keepalive_time", (4, 5)),
    ("net.ipv4.tcp_fin_timeout", (4, 6)),
    ("net.ipv4.tcp_keepalive_intvl", (4, 5)),
    ("net.ipv4.tcp_keepalive_probes", (4, 5)),
    ("net.ipv4.tcp_rmem", (4, 15)),
    ("net.ipv4.tcp_wmem", (4, 15)),
)
_VERSION = re.compile(r"\s*v?([0-9]+)\.([0-9]+)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class SysctlAllowlist:
    """Namespaces by name, and by prefix in the order of the entries."""

    exact: dict[str, str] = field(default_factory=dict)
    prefixes: tuple[tuple[str, str], ...] = ()


def safe_sysctls(kernel_version: str | None) -> tuple[str, ...]:
    """The names that are safe on this kernel (SYS-1); None for a version that cannot be read."""
    version = None if kernel_version is None else _parsed(kernel_version)
    return tuple(
        name
        for name, minimum in _SAFE
        if minimum is None or (version is not None and version >= minimum)
    )


def allowlist(entries: Iterable[str]) -> SysctlAllowlist:
    """The list that `entries` make up: safe names first, then what the user allows (SYS-1).

    Raises ConfigError with the kubelet's text for an entry that is no pattern (SYS-3) or of
    no known namespace (SYS-4).
    """
    exact: dict[str, str] = {}
    prefixes: dict[str, str] = {}
    for entry in entries:
        if len(entry) > _LONGEST_ENTRY or not _ENTRY.fullmatch(entry):
            raise ConfigError(
                f"sysctl {quoted(entry)} must have at most {_LONGEST_ENTRY} characters"
                f" and match regex {_PATTERN}"
            )
        name, star, _ = normalised(entry).partition("*")
        namespace = _namespace(name)
        if namespace is None:
            raise ConfigError(f"the sysctls {quoted(name)} are not known to be namespaced")
        (prefixes if star else exact)[name] = namespace
    return SysctlAllowlist(exact=exact, prefixes=tuple(prefixes.items()))


def decide_sysctls(pod: AdmitPod, allowed: SysctlAllowlist) -> Verdict:
    """Whether every sysctl that the pod sets is allowed; the first that is not rejects (SYS-6)."""
    for given in pod.sysctls:
        error = _error(normalised(given), pod, allowed)
        if error is not None:
            return rejected(REASON, f"forbidden sysctl: {error}")
    return ADMITTED


def normalised(name: str) -> str:
    """The name with dots between its parts (SYS-2)."""
    for character in name:
        if character == ".":
            return name
        if character == "/":
            return name.translate(_SWAPPED)
    return name


def _error(name: str, pod: AdmitPod, allowed: SysctlAllowlist) -> str | None:
    """What is wrong with a normalised name; None if it is allowed (SYS-5)."""
    namespace = allowed.exact.get(name) or next(
        (namespace for prefix, namespace in allowed.prefixes if name.startswith(prefix)), None
    )
    if namespace is None:
        return f"{quoted(name)} not allowlisted"
    if namespace == _IPC and pod.host_ipc:
        return f"{quoted(name)} not allowed with host IPC enabled"
    if namespace == _NET and pod.host_network:
        return f"{quoted(name)} not allowed with host Net enabled"
    return None


def _namespace(name: str) -> str | None:
    if name in _IPC_NAMES or name.startswith(_IPC_PREFIX):
        return _IPC
    return _NET if name.startswith(_NET_PREFIX) else None


def _parsed(version: str) -> tuple[int, int] | None:
    match = _VERSION.match(version)
    return None if match is None else (int(match[1]), int(match[2]))
