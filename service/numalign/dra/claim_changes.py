"""How the kept claims change as pods come and go and as drivers answer (DRA-21 to DRA-31).

Pure: every function takes the claims that are kept and gives those that are to be kept. What a
driver is about to be asked is noted before it is asked, so that no crash leaves a claim prepared
that nobody remembers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from numalign.dra.values import (
    Batches,
    ClaimDevice,
    ClaimInfo,
    ClaimKey,
    Claims,
    DriverPart,
    FetchedClaim,
    Phase,
)
from numalign.model.ids import PodUid


def drivers_to_ask(claim: FetchedClaim, kept: ClaimInfo | None) -> tuple[str, ...]:
    """The drivers of the claim that have not said yet that it is prepared."""
    known = {} if kept is None else kept.drivers
    return tuple(
        driver
        for driver in claim.drivers or ()
        if driver not in known or known[driver].phase is not Phase.PREPARED
    )


def joined(
    claims: Claims, pod_uid: PodUid, revision: int, wanted: Iterable[FetchedClaim]
) -> Claims:
    """The pod uses these claims; a claim that nobody used is new."""
    changed = dict(claims)
    for claim in wanted:
        info = changed.get(claim.key) or ClaimInfo(key=claim.key, uid=claim.uid)
        drivers = {driver: DriverPart() for driver in claim.drivers or ()}
        changed[claim.key] = replace(
            info,
            pods={**info.pods, pod_uid: revision},
            drivers={**drivers, **info.drivers},
        )
    return changed


def adopted(claims: Claims, recorded: Iterable[ClaimInfo]) -> Claims:
    """What the record of admitted pods knows and these claims lack: claims, and their users.

    How a driver stands to a claim that was forgotten is not known. A claim that is kept under
    another UID is left alone.
    """
    changed = dict(claims)
    for claim in recorded:
        known = changed.get(claim.key)
        if known is None:
            drivers = {
                driver: replace(part, phase=Phase.ASKED) for driver, part in claim.drivers.items()
            }
            changed[claim.key] = replace(claim, drivers=drivers)
        elif known.uid == claim.uid and not claim.pods.keys() <= known.pods.keys():
            changed[claim.key] = replace(known, pods={**claim.pods, **known.pods})
    return changed


def to_prepare(claims: Claims, wanted: Iterable[FetchedClaim]) -> Batches:
    """The claims to ask each driver for, in order; drivers in the order of the claims."""
    batches: dict[str, tuple[ClaimInfo, ...]] = {}
    for claim in wanted:
        info = claims[claim.key]
        for driver in drivers_to_ask(claim, info):
            batches[driver] = (*batches.get(driver, ()), info)
    return batches


def used_by(claims: Claims, pod_uid: PodUid) -> tuple[ClaimKey, ...]:
    """The claims that list the pod as a user (DRA-T4)."""
    return tuple(sorted(key for key, info in claims.items() if pod_uid in info.pods))


def without_shared(claims: Claims, pod_uid: PodUid) -> Claims:
    """The pod uses no claim any more that another pod uses as well."""
    changed = dict(claims)
    for key in used_by(claims, pod_uid):
        info = claims[key]
        if len(info.pods) > 1:
            pods = {uid: revision for uid, revision in info.pods.items() if uid != pod_uid}
            changed[key] = replace(info, pods=pods)
    return changed


def to_unprepare(claims: Claims, pod_uid: PodUid) -> Batches:
    """The claims that the pod is the last user of, by the drivers that may hold them."""
    batches: dict[str, tuple[ClaimInfo, ...]] = {}
    for key in used_by(claims, pod_uid):
        info = claims[key]
        for driver, part in sorted(info.drivers.items()):
            if part.phase is not Phase.IDLE:
                batches[driver] = (*batches.get(driver, ()), info)
    return batches


def asked(claims: Claims, batches: Batches) -> Claims:
    """Drivers are about to be asked for these claims."""
    changed = claims
    for driver, batch in batches.items():
        for info in batch:
            changed = _with_phase(changed, info.key, driver, Phase.ASKED)
    return changed


def prepared(
    claims: Claims, driver: str, devices: Mapping[ClaimKey, tuple[ClaimDevice, ...]]
) -> Claims:
    """A driver has prepared claims; what it named before is replaced (DRA-T3)."""
    changed = dict(claims)
    for key, named in devices.items():
        info = changed[key]
        part = DriverPart(phase=Phase.PREPARED, devices=named)
        changed[key] = replace(info, drivers={**info.drivers, driver: part})
    return changed


def unprepared(claims: Claims, driver: str, keys: Iterable[ClaimKey]) -> Claims:
    """A driver holds nothing for these claims: it is not asked again for them (DRA-T17)."""
    changed = claims
    for key in keys:
        changed = _with_phase(changed, key, driver, Phase.IDLE)
    return changed


def without_ended(claims: Claims, pod_uid: PodUid) -> Claims:
    """Claims that the pod was the last user of and that no driver holds are gone (DRA-31)."""
    ended = {
        key
        for key in used_by(claims, pod_uid)
        if len(claims[key].pods) == 1
        and all(part.phase is Phase.IDLE for part in claims[key].drivers.values())
    }
    return {key: info for key, info in claims.items() if key not in ended}


def after_boot(claims: Claims) -> Claims:
    """What drivers had prepared, the node has forgotten with its boot (DRA-16)."""
    changed = claims
    for key, info in claims.items():
        for driver, part in info.drivers.items():
            if part.phase is Phase.PREPARED:
                changed = _with_phase(changed, key, driver, Phase.ASKED)
    return changed


def _with_phase(claims: Claims, key: ClaimKey, driver: str, phase: Phase) -> Claims:
    info = claims[key]
    part = replace(info.drivers[driver], phase=phase)
    return {**claims, key: replace(info, drivers={**info.drivers, driver: part})}
