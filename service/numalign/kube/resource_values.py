"""From the resource lists of a pod message to quantities, with every fault noted.

Separate from the pod because it is the part of it that is read most and checked most: names
decide which amounts must be whole, and which limits must equal their requests.
"""

from __future__ import annotations

from collections.abc import Mapping

from numalign.errors import FieldViolation
from numalign.kube.core.v1 import core_pb2
from numalign.kube.violations import invalid, required
from numalign.model.pod import Resources
from numalign.model.quantity import Quantity, QuantitySyntaxError
from numalign.model.resource_names import is_extended, is_hugepages, is_overcommittable

_LIMIT_NEEDED = "Limit must be set for non overcommitable resources"
_NANOS = 10**9
_NO_RESOURCES = Resources()


def read_resources(
    section: core_pb2.ResourceRequirements, path: str, violations: list[FieldViolation]
) -> Resources:
    """The requests and limits of one `resources` section at `path`.

    Appends to `violations` what is wrong: unparsable, negative or fractional amounts, and
    requests above their limits, or unequal to them, or without one, where no overcommitment
    is possible.
    """
    limits = read_amounts(section.limits, path, ".limits", violations)
    requests = read_amounts(section.requests, path, ".requests", violations)
    if not limits and not requests:
        return _NO_RESOURCES
    for name, request in requests.items():
        limit = limits.get(name)
        if limit is not None:
            if limit != request:
                _check_against_limit(name, request, limit, path, violations)
        elif name not in section.limits and not is_overcommittable(name):
            violations.append(required(f"{path}.limits", _LIMIT_NEEDED))
    return Resources(requests=requests, limits=limits)


def read_amounts(
    amounts: Mapping[str, core_pb2.Quantity], path: str, key: str, violations: list[FieldViolation]
) -> dict[str, Quantity]:
    """The amounts in `path + key` by resource name, in order of name; faults as above."""
    read: dict[str, Quantity] = {}
    for name in sorted(amounts):
        text = amounts[name].string
        try:
            quantity = Quantity.parse(text)
        except QuantitySyntaxError as error:
            violations.append(invalid(f"{path}{key}[{name}]", text, str(error)))
            continue
        read[name] = quantity
        if quantity.nanos < 0:
            detail = "must be greater than or equal to 0"
            violations.append(invalid(f"{path}{key}[{name}]", quantity.canonical(), detail))
        elif quantity.nanos % _NANOS and (is_extended(name) or is_hugepages(name)):
            detail = "must be an integer"
            violations.append(invalid(f"{path}{key}[{name}]", quantity.canonical(), detail))
    return read


def _check_against_limit(
    name: str, request: Quantity, limit: Quantity, path: str, violations: list[FieldViolation]
) -> None:
    if not is_overcommittable(name):
        detail = f"must be equal to {name} limit of {limit.canonical()}"
    elif request > limit:
        detail = f"must be less than or equal to {name} limit of {limit.canonical()}"
    else:
        return
    violations.append(invalid(f"{path}.requests", request.canonical(), detail))
