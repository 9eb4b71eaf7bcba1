"""What it means for a pod that no decision was made on it. Pure."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

SPEC_OWNER = "owner"
NODE = "node"


class Trouble(StrEnum):
    """What to do next."""

    SERVICE = "service"
    """Nobody can be judged now: the pod stays at the head, and is asked about again."""

    POD = "pod"
    """This pod cannot be judged now: others go first."""

    NODE_UNKNOWN = "node unknown"
    """The service wants the Node object first."""

    REFUSED = "refused"
    """This pod can never be judged as it is."""


_SERVICE = frozenset(
    {"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "UNAUTHENTICATED", "PERMISSION_DENIED"}
)


def trouble_of(code: str, fields: Collection[str]) -> Trouble:
    """What a status means; `fields` are those that its details name.

    A pod that is admitted for another owner is not refused: the owner is the agent's own
    setting, and whoever changed it can change it back.
    """
    if code in _SERVICE:
        return Trouble.SERVICE
    if code == "INVALID_ARGUMENT":
        return Trouble.REFUSED
    if code == "FAILED_PRECONDITION":
        if NODE in fields:
            return Trouble.NODE_UNKNOWN
        return Trouble.POD if SPEC_OWNER in fields or not fields else Trouble.REFUSED
    return Trouble.POD
