"""Whether a node is one that a pod selects (PRED-9, PRED-13)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from numalign.admission.handlers.admit_pod import AdmitPod, NodeTerm, Requirement
from numalign.admission.handlers.node_view import NodeView
from numalign.model.resource_names import is_qualified_name

_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", re.ASCII)
_LONGEST_VALUE = 63
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_NODE_NAME = "metadata.name"


def selects(pod: AdmitPod, node: NodeView) -> bool:
    """Whether the pod's node selector and its required node affinity match (PRED-9)."""
    if any(node.labels.get(key) != value for key, value in pod.node_selector.items()):
        return False
    return pod.node_terms is None or any(_matches(term, node) for term in pod.node_terms)


def _matches(term: NodeTerm, node: NodeView) -> bool:
    """Whether all of a term holds; a term that cannot be parsed, or is empty, does not."""
    if not term.labels and not term.fields:
        return False
    if not all(map(_is_legal, term.labels)) or not all(map(_is_legal_field, term.fields)):
        return False
    return all(_label_holds(r, node.labels) for r in term.labels) and all(
        _field_holds(r, node.name) for r in term.fields
    )


def _is_legal(requirement: Requirement) -> bool:
    """Whether a requirement on a label can be parsed."""
    values = requirement.values
    match requirement.operator:
        case "In" | "NotIn":
            counted = bool(values)
        case "Exists" | "DoesNotExist":
            counted = not values
        case "Gt" | "Lt":
            counted = len(values) == 1 and _integer(values[0]) is not None
        case _:
            return False
    return (
        counted
        and is_qualified_name(requirement.key)
        and all(len(v) <= _LONGEST_VALUE and _LABEL_VALUE.fullmatch(v) for v in values)
    )


def _is_legal_field(requirement: Requirement) -> bool:
    return requirement.operator in {"In", "NotIn"} and len(requirement.values) == 1


def _label_holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    number, bound = _integer(value or ""), _integer(requirement.values[0])
    if number is None or bound is None:
        return False
    return number > bound if requirement.operator == "Gt" else number < bound


def _field_holds(requirement: Requirement, node_name: str) -> bool:
    value = node_name if requirement.key == _NODE_NAME else ""
    return (value == requirement.values[0]) is (requirement.operator == "In")


def _integer(text: str) -> int | None:
    """The 64-bit decimal integer in a text; None if it is none."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if _INT64_MIN <= number <= _INT64_MAX else None
