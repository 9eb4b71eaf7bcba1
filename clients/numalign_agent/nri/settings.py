"""The plugin's configuration: the `nri` section of the agent's, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from numalign.config.serving import read_address
from numalign.config.settings import Address, SecondOwner
from numalign.document.problems import Problems
from numalign.document.section import Section
from numalign.process.second_owner.facts import POLICY_KEYS
from numalign.process.second_owner.rules import Resource
from numalign_agent.nri.plan.refusals import OnReject

DEFAULT_SOCKET = Path("/var/run/nri/nri.sock")
EXEMPT_NAMESPACES = ("kube-system",)
OWNER = "default"
"""The domain of callers that name none, and of what `numalign import` takes over."""

_KEYS = (
    "socket",
    "index",
    "owner",
    "onReject",
    "exemptNamespaces",
    "injectDevices",
    "liftQuota",
    "updates",
    "checkInterval",
    "releaseAfter",
    "requestTimeout",
    "address",
)


class Updates(StrEnum):
    """How the runtime is told of changes outside of its own events."""

    REGISTER = "register"
    """By a registration of its own for each: what a runtime asks then, it takes answers to."""

    DIRECT = "direct"
    """By UpdateContainers, which locks up runtimes that hold their locks the wrong way round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NriSettings:
    """One plugin. Times are in seconds. `address` is where its metrics are served, if anywhere.

    `request_timeout` is how long the runtime waits for an answer; 0: as it says itself.
    `policies` are those of the services, as far as they stand in the same file.

    `second_owner` and `host_root` are those of the services: they stand beside the agent's
    section, and count for both.
    """

    socket: Path = DEFAULT_SOCKET
    index: str = "90"
    owner: str = OWNER
    on_reject: OnReject = OnReject.WAIT
    exempt_namespaces: frozenset[str] = frozenset(EXEMPT_NAMESPACES)
    inject_devices: bool = False
    lift_quota: bool = True
    updates: Updates = Updates.REGISTER
    check_every: float = 10.0
    release_after: float = 10.0
    request_timeout: float = 0.0
    address: Address | None = None
    policies: Mapping[Resource, str] = field(default_factory=dict)
    second_owner: SecondOwner = SecondOwner.REFUSE
    host_root: Path = Path("/")


def nri_settings(document: object) -> NriSettings:
    """Read the section of a configuration document. Raises DocumentError with every mistake."""
    problems = Problems()
    kubelet = Section(document, "", problems)
    services = kubelet.section("numalign")
    settings = _read(services.section("agent").section("nri"), services, kubelet)
    problems.refuse()
    return settings


def _read(document: Section, services: Section, kubelet: Section) -> NriSettings:
    document.refuse_unknown(_KEYS)
    default = NriSettings()
    return NriSettings(
        socket=_absolute(document, "socket", default.socket),
        index=_index(document, default.index),
        owner=document.text("owner", default.owner) or default.owner,
        on_reject=document.choice("onReject", default.on_reject),
        exempt_namespaces=_namespaces(document, default.exempt_namespaces),
        inject_devices=document.boolean("injectDevices", default.inject_devices),
        lift_quota=document.boolean("liftQuota", default.lift_quota),
        updates=document.choice("updates", default.updates),
        check_every=document.seconds("checkInterval", default.check_every),
        release_after=document.seconds("releaseAfter", default.release_after),
        request_timeout=document.seconds("requestTimeout", default.request_timeout),
        address=read_address(document, "address"),
        policies={resource: kubelet.text(key) for resource, key in POLICY_KEYS.items()},
        second_owner=services.choice("secondOwner", default.second_owner),
        host_root=_absolute(services, "hostRoot", default.host_root),
    )


def _absolute(document: Section, key: str, default: Path) -> Path:
    path = Path(document.text(key, str(default)))
    if not path.is_absolute():
        document.wrong(key, f'must be an absolute path, not "{path}"')
        return default
    return path


def _index(document: Section, default: str) -> str:
    index = document.text("index", default)
    if len(index) != 2 or not (index.isascii() and index.isdigit()):
        document.wrong("index", f'must be two digits in quotes such as "90", not "{index}"')
        return default
    return index


def _namespaces(document: Section, default: frozenset[str]) -> frozenset[str]:
    value = document.raw("exemptNamespaces")
    if value is None:
        return default
    if not isinstance(value, list):
        document.wrong("exemptNamespaces", "must be a list of names")
        return default
    for at, item in enumerate(value):
        if not isinstance(item, str):
            document.wrong(f"exemptNamespaces[{at}]", f"must be text, not {item!r}")
    return frozenset(item for item in value if isinstance(item, str))
