"""What containers get of the prepared claims of their pod (DRA-25, DRA-26, PR-10)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from numalign.dra import texts
from numalign.dra.naming import ContainerClaim, container_claims
from numalign.dra.values import ClaimDevice, ClaimInfo, ClaimKey, ClaimProblem, Claims, PodClaims


@dataclass(frozen=True, slots=True)
class UsedClaim:
    """A claim that a container refers to; `shown` says how."""

    info: ClaimInfo
    shown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ContainerDevices:
    """A container, the claims that it uses, and the CDI names that it gets for them."""

    name: str
    claims: tuple[UsedClaim, ...]
    cdi_names: tuple[str, ...]


def devices_of_containers(pod: PodClaims, claims: Claims) -> tuple[ContainerDevices, ...]:
    """Every container that uses a claim, in the order of the pod.

    Raises ClaimProblem for a claim that is not kept.
    """
    found = []
    for container in pod.containers:
        wanted = container_claims(pod, container)
        if not wanted:
            continue
        used = [(claim, _kept(pod, claim, claims)) for claim in wanted]
        names = [name for claim, info in used for name in _cdi_names(info, claim.requests)]
        found.append(
            ContainerDevices(
                container.name,
                tuple(UsedClaim(info, claim.shown) for claim, info in used),
                # A device that two references lead to is given once (DRA-T9).
                tuple(dict.fromkeys(names)),
            )
        )
    return tuple(found)


def is_for(device: ClaimDevice, request: str) -> bool:
    """Whether a reference with `request` (empty: the whole claim) leads to the device.

    A request with alternatives is named `<request>/<alternative>` by whoever knows which was
    taken, and `<request>` by everybody else: both mean the same here (DRA-T18).
    """
    return not device.requests or leads_to(request, device.requests)


def leads_to(request: str, names: Iterable[str]) -> bool:
    """Whether a reference with `request` leads to one of these requests of the claim."""
    return not request or _base(request) in {_base(name) for name in names}


def _kept(pod: PodClaims, claim: ContainerClaim, claims: Claims) -> ClaimInfo:
    info = claims.get(ClaimKey(pod.namespace, claim.name))
    if info is None:
        raise ClaimProblem(texts.not_cached(claim.name, pod.namespace))
    return info


def _cdi_names(info: ClaimInfo, requests: Iterable[str]) -> list[str]:
    return [
        name
        for request in requests
        for _, device in info.device_list()
        if is_for(device, request)
        for name in device.cdi_names
    ]


def _base(request: str) -> str:
    return request.split("/", 1)[0]
