"""Every recorded merge, and the recorded comparisons of masks with and without distances."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from numalign.model.hint import ProviderHints, TopologyHint
from numalign.model.numa_mask import mask_of, nodes_of
from numalign.topology.numa_info import NumaInfo, narrowest
from numalign.topology.policy import Policy
from numalign.topology.policy_best_effort import BestEffortPolicy
from numalign.topology.policy_restricted import RestrictedPolicy
from numalign.topology.policy_single_numa_node import SingleNumaNodePolicy

UNIT = Path(__file__).parent / "recordings" / "unit"


def cases(file: str) -> Iterator[dict[str, Any]]:
    with gzip.open(UNIT / file, "rt") as lines:
        yield from map(json.loads, lines)


def hint(given: dict[str, Any]) -> TopologyHint:
    nodes = given["nodes"]
    return TopologyHint(None if nodes is None else mask_of(nodes), given["preferred"])


def provider_hints(given: dict[str, Any] | None) -> ProviderHints:
    if given is None:
        return None
    return {
        resource: None if hints is None else tuple(map(hint, hints))
        for resource, hints in given.items()
    }


def policy_for(given: dict[str, Any]) -> Policy:
    info = info_of(given["numa_nodes"], given["numa_distances"])
    fitter = info.closest if given["prefer_closest_numa"] else narrowest
    makers: dict[str, Callable[[], Policy]] = {
        "best-effort": lambda: BestEffortPolicy(info, fitter),
        "restricted": lambda: RestrictedPolicy(info, fitter),
        "single-numa-node": lambda: SingleNumaNodePolicy(info),
    }
    return makers[given["policy"]]()


def info_of(nodes: list[int], distances: dict[str, list[int]]) -> NumaInfo:
    return NumaInfo(
        nodes=tuple(nodes),
        default_mask=mask_of(nodes),
        distances={int(node): tuple(row) for node, row in distances.items()},
    )


def test_merge_recordings() -> None:
    failed = []
    checked = 0
    for case in cases("merge.jsonl.gz"):
        given = case["input"]
        verdict = policy_for(given).decide([provider_hints(p) for p in given["providers"]])
        mask = verdict.best.mask
        got = {
            "nodes": None if mask is None else list(nodes_of(mask)),
            "preferred": verdict.best.preferred,
            "admit": verdict.admitted,
        }
        checked += 1
        if got != case["expected"]:
            failed.append((case["id"], got, case["expected"]))

    assert failed == []
    assert checked == 5900


def test_mask_distance_recordings() -> None:
    failed = []
    checked = 0
    for case in cases("bitmask.jsonl.gz"):
        given, expected = case["input"], case["expected"]
        if given["op"] not in {"distance", "compare"}:
            continue
        a, b = mask_of(given["a"]), mask_of(given["b"])
        got: dict[str, Any] = {"narrowest": list(nodes_of(narrowest([a, b])))}
        if given["op"] == "distance":
            distances = given["numa_distances"]
            info = info_of([int(node) for node in distances], distances)
            got["closest"] = list(nodes_of(info.closest([a, b])))
            got["average_a"] = info.average_distance(a)
            got["average_b"] = info.average_distance(b)
            expected = {
                **expected,
                "average_a": float(expected["average_a"]),
                "average_b": float(expected["average_b"]),
            }
        checked += 1
        if any(expected[key] != value for key, value in got.items()):
            failed.append((case["id"], got, expected))

    assert failed == []
    assert checked > 100
