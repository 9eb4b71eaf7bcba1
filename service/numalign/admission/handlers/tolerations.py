"""Whether a pod puts up with the taints of a node (PRED-9, PRED-15)."""

from __future__ import annotations

from collections.abc import Iterable

from numalign.admission.handlers.admit_pod import Toleration
from numalign.admission.handlers.node_view import Taint

_NO_EXECUTE = "NoExecute"


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether this toleration covers this taint (PRED-15).

    The operators `Lt` and `Gt` belong to a feature that is off by default, and cover nothing.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "" | "Equal":
            return toleration.value == taint.value
    return False


def any_tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether one of the tolerations covers the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def tolerates_running(tolerations: tuple[Toleration, ...], taints: Iterable[Taint]) -> bool:
    """Whether every `NoExecute` taint is covered; taints of other effects do not count (PRED-9)."""
    return all(any_tolerates(tolerations, taint) for taint in taints if taint.effect == _NO_EXECUTE)
