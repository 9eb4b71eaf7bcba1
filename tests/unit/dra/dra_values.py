"""Claims, pods and answers, made short."""

from __future__ import annotations

from numalign.dra.answers import Entry
from numalign.dra.values import (
    ClaimDevice,
    ClaimInfo,
    ClaimKey,
    ClaimUid,
    Consumer,
    ContainerReferences,
    DriverPart,
    FetchedClaim,
    Phase,
    PodClaim,
    PodClaims,
    Reference,
)
from numalign.model.ids import PodUid

A, B = PodUid("a"), PodUid("b")


def key(name: str) -> ClaimKey:
    return ClaimKey("ns", name)


def uid_of(name: str) -> ClaimUid:
    return ClaimUid(f"u-{name}")


def fetched(
    name: str,
    *drivers: str,
    users: tuple[str, ...] = (A, B),
    uid: str | None = None,
    allocated: bool = True,
    controller: str = "",
) -> FetchedClaim:
    """A claim of these drivers, reserved for pods."""
    return FetchedClaim(
        key=key(name),
        uid=ClaimUid(uid) if uid else uid_of(name),
        controller_uid=controller,
        reserved_for=tuple(Consumer(api_group="", resource="pods", uid=user) for user in users),
        drivers=drivers if allocated else None,
    )


def device(name: str, *requests: str, cdi: tuple[str, ...] | None = None) -> ClaimDevice:
    names = (f"d/x={name}",) if cdi is None else cdi
    return ClaimDevice(pool="p", device=name, requests=requests, cdi_names=names)


def info(
    name: str,
    *users: PodUid,
    uid: str | None = None,
    phase: Phase = Phase.PREPARED,
    **drivers: tuple[ClaimDevice, ...],
) -> ClaimInfo:
    """A kept claim; its drivers by name, each with its devices."""
    return ClaimInfo(
        key=key(name),
        uid=ClaimUid(uid) if uid else uid_of(name),
        pods=dict.fromkeys(users, 1),
        drivers={
            driver: DriverPart(phase=phase, devices=devices) for driver, devices in drivers.items()
        },
    )


def kept(*infos: ClaimInfo) -> dict[ClaimKey, ClaimInfo]:
    return {each.key: each for each in infos}


def pod(*claims: str, references: tuple[tuple[str, str], ...] = (), uid: PodUid = A) -> PodClaims:
    """A pod with entries k0, k1, ... for these claims and one container `c`."""
    return PodClaims(
        uid=uid,
        namespace="ns",
        name=f"pod-{uid}",
        entries=tuple(PodClaim(name=f"k{i}", claim_name=c) for i, c in enumerate(claims)),
        containers=(
            ContainerReferences(
                name="c", references=tuple(Reference(entry, r) for entry, r in references)
            ),
        ),
    )


def done(*devices: ClaimDevice) -> Entry:
    return Entry(devices=devices)
