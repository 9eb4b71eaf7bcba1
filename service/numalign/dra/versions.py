"""Which service is spoken with a DRA driver (DRA-5)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from numalign.dra import texts
from numalign.dra.values import ClaimProblem


class DriverService(StrEnum):
    """The services that we speak, the better one first."""

    V1 = "v1.DRAPlugin"
    V1BETA1 = "v1beta1.DRAPlugin"


HEALTH_SERVICE = "v1alpha1.DRAResourceHealth"


def chosen_service(offered: Sequence[str]) -> DriverService:
    """The best service that a plugin offers, whatever its order (DRA-T1).

    Raises ClaimProblem with the cause, in the kubelet's words.
    """
    if not offered:
        raise ClaimProblem(texts.NO_VERSIONS)
    for service in DriverService:
        if service.value in offered:
            return service
    raise ClaimProblem(texts.no_common_version(offered, [s.value for s in DriverService]))
