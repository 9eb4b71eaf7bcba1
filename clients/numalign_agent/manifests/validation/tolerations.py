"""Checks on what a pod tolerates."""

from __future__ import annotations

from typing import Any

from numalign.errors import FieldViolation
from numalign.kube.violations import invalid, unsupported
from numalign_agent.manifests.validation.words import (
    Problems,
    check_label_value,
    check_qualified,
)

Document = dict[str, Any]

_OPERATORS = ("Equal", "Exists", "Lt", "Gt")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def check_tolerations(spec: Document) -> Problems:
    """Keys, operators, effects, and which of them go together."""
    for index, toleration in enumerate(spec.get("tolerations", ())):
        yield from _check_toleration(toleration, f"spec.tolerations[{index}]")


def _check_toleration(toleration: Document, path: str) -> Problems:
    key, value = toleration.get("key", ""), toleration.get("value", "")
    operator, effect = toleration.get("operator", ""), toleration.get("effect", "")
    if key:
        yield from check_qualified(f"{path}.key", key)
    elif operator != "Exists":
        detail = "operator must be Exists when `key` is empty, which means 'match all values'"
        yield invalid(f"{path}.operator", operator, detail)
    if operator not in ("", *_OPERATORS):
        yield unsupported(f"{path}.operator", operator, _OPERATORS)
    elif operator == "Exists" and value:
        yield invalid(f"{path}.value", value, "value must be empty when `operator` is 'Exists'")
    elif value:
        yield from check_label_value(f"{path}.value", value)
    if effect and effect not in _EFFECTS:
        yield unsupported(f"{path}.effect", effect, _EFFECTS)
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield FieldViolation(f"{path}.effect", f"Invalid value: {effect!r}: {detail}")
