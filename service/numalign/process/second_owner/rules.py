"""From what was seen on the node to who else hands out what numalign hands out.

Pure. Separate from looking (`facts`) and from what follows (`watch`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Resource(StrEnum):
    """What can be handed out twice."""

    CPU = "cpu"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class KubeletPolicy:
    """A policy that the kubelet runs or will run with, and where that stands."""

    resource: Resource
    policy: str
    where: str


@dataclass(frozen=True, slots=True)
class Seen:
    """Something with a name (a driver, a plugin), and the path where it was seen."""

    name: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """What was seen. `unreadable` says what could not be looked at, and why.

    `drivers` are kubelet plugins on whose socket somebody answers, by driver name; `nri` are
    plugins of the container runtime by file or process name.
    """

    kubelet: tuple[KubeletPolicy, ...] = ()
    drivers: tuple[Seen, ...] = ()
    nri: tuple[Seen, ...] = ()
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SecondOwner:
    """Somebody who hands out `resource`; `text` names them and the evidence."""

    resource: Resource
    text: str


NO_POLICY: Mapping[Resource, str] = {Resource.CPU: "none", Resource.MEMORY: "None"}
"""The policies that hand out nothing."""

_MANAGERS = {Resource.CPU: "CPU Manager", Resource.MEMORY: "Memory Manager"}
_BOTH = (Resource.CPU, Resource.MEMORY)
_DRIVERS = {"dra.cpu": (Resource.CPU,), "dra.memory": (Resource.MEMORY,)}
_NRI = {
    "topology-aware": _BOTH,
    "balloons": _BOTH,
    "memory-policy": (Resource.MEMORY,),
}
_NRI_NAME = re.compile(
    r"(?:[0-9]{2}-)?(?:nri-)?(?:resource-policy-)?(?P<name>[a-z-]+?)(?:\.conf)?\Z"
)


def second_owners(facts: NodeFacts, policies: Mapping[Resource, str]) -> tuple[SecondOwner, ...]:
    """Who else hands out what numalign, under these policies of its own, hands out too."""
    handed_out = {r for r, policy in policies.items() if policy not in {"", NO_POLICY[r]}}
    owners = (*_kubelet(facts), *_drivers(facts), *_nri(facts))
    return tuple(owner for owner in owners if owner.resource in handed_out)


def driver_of(socket_name: str) -> str:
    """The driver that registers under the name of a socket in plugins_registry.

    A driver that is updated without a gap puts an id between its name and the suffix.
    """
    for driver in _DRIVERS:
        if re.fullmatch(re.escape(driver) + r"(?:-[0-9a-f-]+)?-reg\.sock", socket_name):
            return driver
    return ""


def known_drivers() -> tuple[str, ...]:
    """Names of the drivers that hand out CPUs or memory."""
    return tuple(_DRIVERS)


def is_nri_policy(name: str) -> bool:
    """Whether a file or process of this name is a policy that hands out CPUs or memory."""
    return bool(_resources_of_nri(name))


def _kubelet(facts: NodeFacts) -> Iterator[SecondOwner]:
    for found in facts.kubelet:
        if found.policy not in {"", NO_POLICY[found.resource]}:
            yield SecondOwner(
                found.resource,
                f"the kubelet's {_MANAGERS[found.resource]} has policy {found.policy} "
                f"({found.where})",
            )


def _drivers(facts: NodeFacts) -> Iterator[SecondOwner]:
    for found in facts.drivers:
        for resource in _DRIVERS.get(found.name, ()):
            yield SecondOwner(resource, f"the DRA driver {found.name} answers ({found.where})")


def _nri(facts: NodeFacts) -> Iterator[SecondOwner]:
    for found in facts.nri:
        for resource in _resources_of_nri(found.name):
            yield SecondOwner(
                resource, f"the NRI policy {found.name} is on this node ({found.where})"
            )


def _resources_of_nri(name: str) -> tuple[Resource, ...]:
    found = _NRI_NAME.match(name)
    return () if found is None else _NRI.get(found["name"], ())
