"""Runners of `merge` and `bitmask` records: the Topology Manager's policies and masks."""

from __future__ import annotations

from collections.abc import Callable

from numalign.model import numa_mask
from numalign.model.hint import ProviderHints, TopologyHint
from numalign.model.numa_mask import NumaMask, mask_of, nodes_of
from numalign.replay.recordings import Json, RecordingError
from numalign.topology.numa_info import NumaInfo, narrowest
from numalign.topology.policy import Policy
from numalign.topology.policy_best_effort import BestEffortPolicy
from numalign.topology.policy_restricted import RestrictedPolicy
from numalign.topology.policy_single_numa_node import SingleNumaNodePolicy


def merge_answer(record: Json) -> Json:
    """The merged affinity and the policy's verdict (TM-19..TM-36)."""
    given = record["input"]
    verdict = _policy(given).decide([_provider_hints(p) for p in given["providers"]])
    mask = verdict.best.mask
    return {
        "nodes": None if mask is None else list(nodes_of(mask)),
        "preferred": verdict.best.preferred,
        "admit": verdict.admitted,
    }


def bitmask_answer(record: Json) -> Json:
    """What the operation of the record gives (TM-1..TM-11)."""
    given = record["input"]
    operations: dict[str, Callable[[Json], Json]] = {
        "new": _new,
        "iterate": _iterate,
        "compare": _compare,
        "distance": _distance,
    }
    if given["op"] not in operations:
        raise RecordingError(f"unknown operation {given['op']}")
    return operations[given["op"]](given)


def _policy(given: Json) -> Policy:
    info = _info(given["numa_nodes"], given["numa_distances"])
    fitter = info.closest if given["prefer_closest_numa"] else narrowest
    match given["policy"]:
        case "best-effort":
            return BestEffortPolicy(info, fitter)
        case "restricted":
            return RestrictedPolicy(info, fitter)
        case "single-numa-node":
            return SingleNumaNodePolicy(info)
    raise RecordingError(f"unknown policy {given['policy']}")


def _info(nodes: list[int], distances: dict[str, list[int]]) -> NumaInfo:
    return NumaInfo(
        nodes=tuple(nodes),
        default_mask=mask_of(nodes),
        distances={int(node): tuple(row) for node, row in distances.items()},
    )


def _provider_hints(given: Json | None) -> ProviderHints:
    if given is None:
        return None
    return {
        resource: None if hints is None else tuple(map(_hint, hints))
        for resource, hints in given.items()
    }


def _hint(given: Json) -> TopologyHint:
    nodes = given["nodes"]
    return TopologyHint(None if nodes is None else mask_of(nodes), given["preferred"])


def _new(given: Json) -> Json:
    try:
        mask = mask_of(given["a"])
    except ValueError as error:
        return {"error": str(error)}
    return {
        "nodes": list(nodes_of(mask)),
        "count": numa_mask.count(mask),
        "string": numa_mask.text_of(mask),
        "empty": mask == numa_mask.EMPTY,
    }


def _iterate(given: Json) -> Json:
    return {"masks": [list(nodes_of(mask)) for mask in numa_mask.subsets(given["a"])]}


def _compare(given: Json) -> Json:
    a, b = mask_of(given["a"]), mask_of(given["b"])
    return {
        "equal": a == b,
        "narrower": numa_mask.is_narrower(a, b),
        "less": a < b,
        "greater": a > b,
        "and": list(nodes_of(NumaMask(a & b))),
        "or": list(nodes_of(NumaMask(a | b))),
        "narrowest": list(nodes_of(narrowest([a, b]))),
    }


def _distance(given: Json) -> Json:
    a, b = mask_of(given["a"]), mask_of(given["b"])
    distances = given["numa_distances"]
    info = _info([int(node) for node in distances], distances)
    return {
        "average_a": _shortest(info.average_distance(a)),
        "average_b": _shortest(info.average_distance(b)),
        "closest": list(nodes_of(info.closest([a, b]))),
        "narrowest": list(nodes_of(narrowest([a, b]))),
    }


def _shortest(number: float) -> str:
    """The shortest decimal text that gives back the number."""
    return repr(number).removesuffix(".0")
