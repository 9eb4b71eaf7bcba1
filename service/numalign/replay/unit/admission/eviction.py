"""Runners of `eviction_admit`, `eviction_thresholds` and `eviction_series` records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.eviction import decide_eviction
from numalign.admission.handlers.eviction_signals import (
    FsStats,
    MemoryStats,
    NodeStats,
    Observation,
    observations,
)
from numalign.admission.handlers.eviction_state import (
    EvictionState,
    evaluate,
    thresholds_met,
    thresholds_updated,
)
from numalign.admission.handlers.eviction_thresholds import (
    Amount,
    EvictionOptions,
    Threshold,
    parse_thresholds,
)
from numalign.errors import ConfigError
from numalign.model.feature_gates import FeatureGates
from numalign.model.ids import PodUid
from numalign.model.pod import Container, Pod, Resources
from numalign.model.quantity import Quantity
from numalign.replay.recordings import Json
from numalign.replay.unit.admission.objects import pod_of, verdict_answer

_GATES = FeatureGates()
_BEST_EFFORT = AdmitPod(pod=Pod(uid=PodUid("best-effort"), containers=(Container(name="c"),)))
_BURSTABLE = AdmitPod(
    pod=Pod(
        uid=PodUid("burstable"),
        containers=(
            Container(name="c", resources=Resources(requests={"cpu": Quantity.from_int(1)})),
        ),
    )
)


def eviction_admit_answer(record: Json) -> Json:
    """The eviction handler's verdict under given conditions."""
    given = record["input"]
    return verdict_answer(decide_eviction(pod_of(given["pod"]), given["conditions"], _GATES))


def eviction_thresholds_answer(record: Json) -> Json:
    """Thresholds as parsed, or those met and updated where observations are given."""
    given = record["input"]
    try:
        thresholds = parse_thresholds(_options(given))
    except ConfigError as error:
        return {"error": str(error)}
    if "observations" not in given:
        return {"thresholds": _thresholds(thresholds)}
    observed, last = _observed(given["observations"]), _observed(given["last_observations"])
    met = thresholds_met(thresholds, observed, with_reclaim=given["enforce_min_reclaim"])
    return {
        "met": _thresholds(met),
        "updated": _thresholds(thresholds_updated(thresholds, observed, last)),
    }


def eviction_series_answer(record: Json) -> Json:
    """Conditions and verdicts step by step, and the thresholds afterwards."""
    given = record["input"]
    state = EvictionState(thresholds=parse_thresholds(_options(given)))
    steps = []
    for step in given["steps"]:
        stats = step["stats"]
        state = evaluate(
            state,
            None if stats is None else observations(_stats(stats)),
            step["t"],
            transition_period=given.get("transition_period_s", 0),
            dedicated_image_fs=given["dedicated_image_fs"],
            split_container_fs=given["split_container_fs"],
        )
        steps.append(
            {
                "conditions": list(state.conditions),
                "met_past_grace": sorted(threshold.signal for threshold in state.met),
                "admits_best_effort": _admits(_BEST_EFFORT, state),
                "admits_burstable": _admits(_BURSTABLE, state),
            }
        )
    return {"steps": steps, "thresholds_after": _thresholds(state.thresholds)}


def _admits(pod: AdmitPod, state: EvictionState) -> bool:
    return decide_eviction(pod, state.conditions, _GATES).admit


def _options(given: Json) -> EvictionOptions:
    return EvictionOptions(
        hard=given["eviction_hard"],
        soft=given["eviction_soft"],
        soft_grace_period=given["eviction_soft_grace_period"],
        minimum_reclaim=given["eviction_minimum_reclaim"],
        enforce_node_allocatable=given["enforce_node_allocatable"],
    )


def _observed(given: Mapping[str, Json]) -> dict[str, Observation]:
    return {
        signal: Observation(
            Quantity.from_int(values["available"]),
            Quantity.from_int(values["capacity"]),
            values.get("time"),
        )
        for signal, values in given.items()
    }


def _stats(given: Json) -> NodeStats:
    rlimit = given.get("rlimit", {})
    return NodeStats(
        memory=_memory(given.get("memory", {})),
        pods_memory=_memory(given.get("pods_container_memory", {})),
        node_fs=_fs(given.get("node_fs", {})),
        image_fs=_fs(given.get("image_fs", {})),
        container_fs=_fs(given.get("container_fs", {})),
        max_pid=rlimit.get("max_pid"),
        processes=rlimit.get("running_processes"),
    )


def _memory(given: Json) -> MemoryStats:
    return MemoryStats(
        available=given.get("available_bytes"), working_set=given.get("working_set_bytes")
    )


def _fs(given: Json) -> FsStats:
    return FsStats(
        available=given.get("available_bytes"),
        capacity=given.get("capacity_bytes"),
        inodes_free=given.get("inodes_free"),
        inodes=given.get("inodes"),
    )


def _thresholds(thresholds: Iterable[Threshold]) -> list[Json]:
    return [
        {
            "signal": threshold.signal,
            "operator": threshold.operator,
            **_amount(threshold.value),
            "grace_s": threshold.grace,
            "min_reclaim": None
            if threshold.min_reclaim is None
            else _amount(threshold.min_reclaim),
        }
        for threshold in sorted(thresholds, key=lambda t: (t.signal, t.grace))
    ]


def _amount(amount: Amount) -> Json:
    percentage: Any = amount.percentage
    if percentage is not None and math.isnan(percentage):
        percentage = "NaN"
    return {
        "quantity": None if amount.quantity is None else amount.quantity.canonical(),
        "percentage": percentage,
    }
