"""Resource claims as values: what the API says of them, what pods refer to, what drivers did.

Separate from the functions over them, and from messages and files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType

from numalign.model.ids import PodUid

ClaimUid = NewType("ClaimUid", str)


@dataclass(frozen=True, slots=True, order=True)
class ClaimKey:
    """By what a claim is kept: its UID may change under the same name."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """Somebody who may use a claim: an entry of `status.reservedFor`."""

    api_group: str
    resource: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedClaim:
    """A claim as the API has it. `drivers` are distinct, in order; None: not allocated."""

    key: ClaimKey
    uid: ClaimUid
    controller_uid: str = ""
    reserved_for: tuple[Consumer, ...] = ()
    drivers: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodClaim:
    """An entry of `spec.resourceClaims`."""

    name: str
    claim_name: str | None = None
    template: str | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """A container refers to an entry of its pod; `request` empty: to the whole claim."""

    entry: str
    request: str

    @property
    def shown(self) -> str:
        """As the status of a pod names it, behind `claim:` (DRA-39)."""
        return f"{self.entry}/{self.request}" if self.request else self.entry


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerReferences:
    """What one container refers to; `extended` are requests of the pod's extended claim."""

    name: str
    references: tuple[Reference, ...] = ()
    extended: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodClaims:
    """What a pod says about claims.

    `statuses` has the claims made for entries with a template, None where none was needed;
    `extended_claim` backs extended resources. Init containers come first.
    """

    uid: PodUid
    namespace: str
    name: str
    entries: tuple[PodClaim, ...] = ()
    statuses: Mapping[str, str | None] = field(default_factory=dict)
    extended_claim: str | None = None
    containers: tuple[ContainerReferences, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimDevice:
    """A device that a driver named for a claim; no `requests`: it is for all of them."""

    pool: str
    device: str
    share_id: str | None = None
    requests: tuple[str, ...] = ()
    cdi_names: tuple[str, ...] = ()


class Phase(StrEnum):
    """How a driver stands to a claim.

    - IDLE: it holds nothing for the claim;
    - ASKED: it was asked for something, and has not said that it is done;
    - PREPARED: it has said that the claim is prepared.
    """

    IDLE = "idle"
    ASKED = "asked"
    PREPARED = "prepared"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverPart:
    """What one driver did for a claim."""

    phase: Phase = Phase.IDLE
    devices: tuple[ClaimDevice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimInfo:
    """A claim that pods of this node use, each with the revision at which it was admitted."""

    key: ClaimKey
    uid: ClaimUid
    pods: Mapping[PodUid, int] = field(default_factory=dict)
    drivers: Mapping[str, DriverPart] = field(default_factory=dict)

    @property
    def is_prepared(self) -> bool:
        """Whether every driver has said so; a claim without devices always is (DRA-T7)."""
        return all(part.phase is Phase.PREPARED for part in self.drivers.values())

    def device_list(self) -> tuple[tuple[str, ClaimDevice], ...]:
        """Every device with its driver, by driver."""
        return tuple(
            (driver, device)
            for driver, part in sorted(self.drivers.items())
            for device in part.devices
        )


Claims = Mapping[ClaimKey, ClaimInfo]
"""Every claim that is kept."""

Batches = Mapping[str, tuple[ClaimInfo, ...]]
"""The claims of one call to each driver."""


class ClaimProblem(Exception):
    """The claims of a pod cannot be prepared or unprepared; the text is the kubelet's."""
