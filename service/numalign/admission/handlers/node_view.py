"""A node as the predicates see it (PRED-1).

Separate from the Node object, which has much that nobody here reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from numalign.model.quantity import Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """What keeps pods away from a node."""

    key: str
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """Name, labels, taints and allocatable of a node, and whether its runtime is strict."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    allocatable: Mapping[str, Quantity] = field(default_factory=dict)
    supplemental_groups_policy: bool = False
