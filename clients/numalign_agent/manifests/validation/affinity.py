"""Checks on which nodes and which neighbours a pod wants."""

from __future__ import annotations

from typing import Any

from numalign.kube.names import check_label
from numalign.kube.violations import required
from numalign_agent.manifests.validation.selectors import (
    check_label_selector,
    check_node_selector_term,
)
from numalign_agent.manifests.validation.words import Problems, check_qualified, wrong_number

Document = dict[str, Any]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_HEAVIEST = 100


def check_affinity(spec: Document) -> Problems:
    """Terms, selectors, topology keys and weights."""
    affinity = spec.get("affinity", {})
    if "nodeAffinity" in affinity:
        yield from _check_nodes("spec.affinity.nodeAffinity", affinity["nodeAffinity"])
    for field in ("podAffinity", "podAntiAffinity"):
        if field in affinity:
            yield from _check_pods(f"spec.affinity.{field}", affinity[field])


def check_topology_key(path: str, key: str) -> Problems:
    """The label that makes nodes a domain."""
    if not key:
        yield required(path, "can not be empty")
    else:
        yield from check_qualified(path, key)


def _check_nodes(path: str, affinity: Document) -> Problems:
    if _REQUIRED in affinity:
        terms = affinity[_REQUIRED].get("nodeSelectorTerms", ())
        at = f"{path}.{_REQUIRED}.nodeSelectorTerms"
        if not terms:
            yield required(at, "must have at least one node selector term")
        for index, term in enumerate(terms):
            yield from check_node_selector_term(f"{at}[{index}]", term)
    for index, preferred in enumerate(affinity.get(_PREFERRED, ())):
        at = f"{path}.{_PREFERRED}[{index}]"
        yield from _check_weight(at, preferred)
        yield from check_node_selector_term(f"{at}.preference", preferred.get("preference", {}))


def _check_pods(path: str, affinity: Document) -> Problems:
    for index, term in enumerate(affinity.get(_REQUIRED, ())):
        yield from _check_pod_term(f"{path}.{_REQUIRED}[{index}]", term)
    for index, preferred in enumerate(affinity.get(_PREFERRED, ())):
        at = f"{path}.{_PREFERRED}[{index}]"
        yield from _check_weight(at, preferred)
        yield from _check_pod_term(f"{at}.podAffinityTerm", preferred.get("podAffinityTerm", {}))


def _check_pod_term(path: str, term: Document) -> Problems:
    for field in ("labelSelector", "namespaceSelector"):
        yield from check_label_selector(f"{path}.{field}", term.get(field, {}))
    for index, namespace in enumerate(term.get("namespaces", ())):
        yield from check_label(f"{path}.namespaces[{index}]", namespace)
    yield from check_topology_key(f"{path}.topologyKey", term.get("topologyKey", ""))


def _check_weight(path: str, preferred: Document) -> Problems:
    weight = preferred.get("weight", 0)
    if not 1 <= weight <= _HEAVIEST:
        yield wrong_number(f"{path}.weight", weight, f"must be in the range 1-{_HEAVIEST}")
