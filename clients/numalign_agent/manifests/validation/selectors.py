"""Checks on what selects pods and nodes: by labels, and by fields."""

from __future__ import annotations

from typing import Any

from numalign.kube.names import check_subdomain
from numalign.kube.violations import invalid, required
from numalign_agent.manifests.validation.words import (
    Problems,
    check_label_value,
    check_qualified,
    forbidden,
)

Document = dict[str, Any]

_NO_OPERATOR = "not a valid selector operator"
_LISTED = ("In", "NotIn")
_UNLISTED = ("Exists", "DoesNotExist")
_COMPARED = ("Gt", "Lt")
_NODE_NAME = "metadata.name"


def check_label_selector(path: str, selector: Document) -> Problems:
    """Labels that must be there, and what must hold of them."""
    for key, value in selector.get("matchLabels", {}).items():
        yield from check_qualified(f"{path}.matchLabels", key)
        yield from check_label_value(f"{path}.matchLabels", value)
    for index, requirement in enumerate(selector.get("matchExpressions", ())):
        at = f"{path}.matchExpressions[{index}]"
        yield from _check_values(at, requirement, may_compare=False)
        yield from check_qualified(f"{at}.key", requirement.get("key", ""))


def check_node_selector_term(path: str, term: Document) -> Problems:
    """What must hold of a node's labels and of its name."""
    for index, requirement in enumerate(term.get("matchExpressions", ())):
        at = f"{path}.matchExpressions[{index}]"
        yield from _check_values(at, requirement, may_compare=True)
        yield from check_qualified(f"{at}.key", requirement.get("key", ""))
        if requirement.get("operator") in _LISTED:
            for place, value in enumerate(requirement.get("values", ())):
                yield from check_label_value(f"{at}.values[{place}]", value)
    for index, requirement in enumerate(term.get("matchFields", ())):
        yield from _check_field(f"{path}.matchFields[{index}]", requirement)


def _check_values(path: str, requirement: Document, *, may_compare: bool) -> Problems:
    operator, values = requirement.get("operator", ""), requirement.get("values", ())
    if operator in _LISTED:
        if not values:
            detail = "must be specified when `operator` is 'In' or 'NotIn'"
            yield required(f"{path}.values", detail)
    elif operator in _UNLISTED:
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden(f"{path}.values", detail)
    elif may_compare and operator in _COMPARED:
        if len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield required(f"{path}.values", detail)
    else:
        yield invalid(f"{path}.operator", operator, _NO_OPERATOR)


def _check_field(path: str, requirement: Document) -> Problems:
    operator, values = requirement.get("operator", ""), requirement.get("values", ())
    if operator not in _LISTED:
        yield invalid(f"{path}.operator", operator, _NO_OPERATOR)
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", detail)
    if requirement.get("key", "") != _NODE_NAME:
        detail = "not a valid field selector key"
        yield invalid(f"{path}.key", requirement.get("key", ""), detail)
    else:
        for index, value in enumerate(values):
            yield from check_subdomain(f"{path}.values[{index}]", value)
