"""What can be wrong with a pod on a node, and how the first of it is reported (PRED-12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from numalign.admission.handlers.verdict import ADMITTED, Verdict, rejected


@dataclass(frozen=True, slots=True)
class InsufficientResource:
    """Too little of one resource: CPU in thousandths, everything else in base units."""

    resource: str
    requested: int
    used: int
    capacity: int

    @property
    def missing(self) -> int:
        """How much would have to be freed (PRE-3)."""
        return self.requested - (self.capacity - self.used)


@dataclass(frozen=True, slots=True)
class PredicateFailure:
    """A predicate that does not hold, whatever is freed."""

    predicate: str
    description: str


Failure: TypeAlias = InsufficientResource | PredicateFailure

NODE_AFFINITY = PredicateFailure(
    "NodeAffinity", "node(s) didn't match Pod's node affinity/selector"
)
NODE_NAME = PredicateFailure("NodeName", "node(s) didn't match the requested node name")
NODE_PORTS = PredicateFailure(
    "NodePorts", "node(s) didn't have free ports for the requested pod ports"
)
TAINT_TOLERATION = PredicateFailure(
    "TaintToleration", "node(s) had taints that the pod didn't tolerate"
)


def verdict_of(failures: Sequence[Failure]) -> Verdict:
    """The refusal for the first failure; admission where there is none (PRED-12)."""
    if not failures:
        return ADMITTED
    match failures[0]:
        case InsufficientResource(resource, requested, used, capacity):
            return rejected(
                f"OutOf{resource}",
                f"Node didn't have enough resource: {resource}, requested: {requested},"
                f" used: {used}, capacity: {capacity}",
            )
        case PredicateFailure(predicate, description):
            return rejected(predicate, f"Predicate {predicate} failed: {description}")
