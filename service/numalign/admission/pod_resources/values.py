"""What the pod resources interface tells, as values: pods, their containers, what they hold.

Separate from the messages of its versions, which say the same in different fields, and from
the records that it is read from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from numalign.model.ids import PodUid


class Kind(Enum):
    """What part of a pod's life a container has."""

    INIT = auto()
    SIDECAR = auto()
    APP = auto()


@dataclass(frozen=True, slots=True)
class ListedContainer:
    """A container of a pod by its name."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPod:
    """A pod; `containers` has init containers first, in the order of the pod."""

    uid: PodUid
    name: str
    namespace: str
    containers: tuple[ListedContainer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldDevices:
    """Devices of one resource. `numa_nodes` None: no topology; (): a topology without nodes."""

    resource: str
    ids: tuple[str, ...]
    numa_nodes: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldMemory:
    """Bytes of one memory resource; `numa_nodes` as for devices."""

    resource: str
    size: int
    numa_nodes: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedDevice:
    """One device of a resource claim, with the CDI names that its driver gave it."""

    driver: str
    pool: str
    device: str
    share_id: str | None = None
    cdi_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldClaim:
    """A resource claim of a container, with all devices of the whole claim (PR-10)."""

    name: str
    namespace: str
    devices: tuple[ClaimedDevice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What one container holds, or what a node can give out. Lists are in the order told."""

    devices: tuple[HeldDevices, ...] = ()
    cpus: tuple[int, ...] = ()
    memory: tuple[HeldMemory, ...] = ()
    claims: tuple[HeldClaim, ...] = ()


NOTHING = Held()
"""What a container without anything of its own holds."""

HeldBy = Mapping[str, Held]
"""What the containers of one pod hold, by name."""
