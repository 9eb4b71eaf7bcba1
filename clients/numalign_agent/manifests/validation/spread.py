"""Checks on how evenly pods are to be spread."""

from __future__ import annotations

from typing import Any

from numalign.kube.violations import duplicate, unsupported
from numalign_agent.manifests.validation.affinity import check_topology_key
from numalign_agent.manifests.validation.selectors import check_label_selector
from numalign_agent.manifests.validation.words import (
    Problems,
    check_one_of,
    wrong_number,
)

Document = dict[str, Any]

_OTHERWISE = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSION = ("Honor", "Ignore")
_POSITIVE = "must be greater than zero"


def check_spread(spec: Document) -> Problems:
    """Skew, domains, what to do otherwise, and no constraint twice."""
    seen = set()
    for index, constraint in enumerate(spec.get("topologySpreadConstraints", ())):
        path = f"spec.topologySpreadConstraints[{index}]"
        yield from _check_constraint(path, constraint)
        key = (constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", ""))
        if key in seen:
            yield duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", f"{{{', '.join(key)}}}")
        seen.add(key)


def _check_constraint(path: str, constraint: Document) -> Problems:
    skew, otherwise = constraint.get("maxSkew", 0), constraint.get("whenUnsatisfiable", "")
    if skew <= 0:
        yield wrong_number(f"{path}.maxSkew", skew, _POSITIVE)
    yield from check_topology_key(f"{path}.topologyKey", constraint.get("topologyKey", ""))
    yield from check_one_of(f"{path}.whenUnsatisfiable", otherwise, _OTHERWISE)
    domains = constraint.get("minDomains")
    if domains is not None and domains <= 0:
        yield wrong_number(f"{path}.minDomains", domains, _POSITIVE)
    if domains is not None and otherwise == "ScheduleAnyway":
        detail = "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
        yield wrong_number(f"{path}.minDomains", domains, detail)
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if constraint.get(field, _INCLUSION[0]) not in _INCLUSION:
            yield unsupported(f"{path}.{field}", constraint[field], _INCLUSION)
    yield from check_label_selector(f"{path}.labelSelector", constraint.get("labelSelector", {}))
