"""The start-up taint: whether a Node has it, and the patches that take it off or put it back. Pure.

The patches are JSON patches whose tests name what was read. A patch that meets other taints than
those is refused as a whole, so nobody else's taint is ever touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

KEY = "numalign.io/not-ready"
TAINT = {"key": KEY, "effect": "NoSchedule"}
"""What a node joins the cluster with, and what is put back."""

_TAINTS = "/spec/taints"

Json = Mapping[str, Any]
Patch = Sequence[Json]


def is_tainted(node: Json) -> bool:
    """Whether a Node has the taint, with whatever effect."""
    return any(taint.get("key") == KEY for taint in _taints(node))


def removal(node: Json) -> Patch:
    """The patch that takes the taint off; empty where there is none."""
    places = [place for place, taint in enumerate(_taints(node)) if taint.get("key") == KEY]
    patch: list[Json] = []
    # From the last one on: what is before a place stays where it is.
    for place in reversed(places):
        at = f"{_TAINTS}/{place}"
        patch.append({"op": "test", "path": at, "value": _taints(node)[place]})
        patch.append({"op": "remove", "path": at})
    return patch


def addition(node: Json) -> Patch:
    """The patch that puts the taint on; empty where there is one."""
    if is_tainted(node):
        return ()
    taints = list(_taints(node))
    if taints:
        return (
            {"op": "test", "path": _TAINTS, "value": taints},
            {"op": "add", "path": f"{_TAINTS}/-", "value": TAINT},
        )
    # There is nothing that could be tested for not being there but the version of the whole.
    version = (node.get("metadata") or {}).get("resourceVersion", "")
    return (
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "add", "path": _TAINTS, "value": [TAINT]},
    )


def _taints(node: Json) -> Sequence[Json]:
    return (node.get("spec") or {}).get("taints") or ()
