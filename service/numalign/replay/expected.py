"""What a recorded scenario says was decided, without what it was asked. Pure.

The form in which a history is replayed too, so that both are compared key by key.
"""

from __future__ import annotations

from numalign.replay.recordings import Json

PANIC: Json = {"admitted": False, "reason": "UnexpectedAdmissionError", "nothing_kept": True}
"""What is asked where the kubelet panics: the pod is refused and nothing is kept."""

ENDS = frozenset({"error", "start_error", "start_error_stage"})
"""Results of a step after which there is nothing more."""

_STEP_RESULTS = ("hints", "allocate_calls", "start_error", "start_error_stage")
_SCENARIO_RESULTS = (
    "construct_error",
    "construct_error_stage",
    "effective_reserved_cpus",
)


def recorded_results(scenario: Json) -> Json:
    """The results of a scenario."""
    results = {key: scenario[key] for key in _SCENARIO_RESULTS if key in scenario}
    if "construct_error" in scenario:
        return results
    if "initial_state" in scenario:
        results["initial_state"] = _state(scenario["initial_state"])
    results["steps"] = [_step(step) for step in scenario["steps"]]
    return results


def is_panic(entry: Json) -> bool:
    """Whether the kubelet panics at an `admit` step or an entry of `readmit`."""
    return "panic" in entry.get("expect", {})


def _step(step: Json) -> Json:
    if step["op"] == "admit":
        return _admission(step)
    results = {key: step[key] for key in _STEP_RESULTS if key in step}
    if step["op"] == "restart" and "start_error" not in step:
        results["readmit"] = [
            {"pod_uid": entry["pod_uid"], **_admission(entry)} for entry in step.get("readmit", ())
        ]
    if "expect" in step:
        results["expect"] = _state(step["expect"])
    return results


def _admission(entry: Json) -> Json:
    if is_panic(entry):
        return {"kept": False, "expect": PANIC}
    return {
        "kept": False,
        "hints": entry["hints"],
        "allocate_calls": entry["allocate_calls"],
        "plugin_calls": entry.get("plugin_calls") or [],
        "expect": _state(entry["expect"]),
    }


def _state(expect: Json) -> Json:
    """A state, without resources of which no device is allocated (see `words`)."""
    allocated = {resource: ids for resource, ids in expect["device_allocated"].items() if ids}
    return {**expect, "device_allocated": allocated}


def until_end(recorded: Json, replayed: Json) -> tuple[Json, Json]:
    """Both results up to where the replay ended before its time, with the reason alone.

    A history ends where a call fails or a start is refused, and what was recorded after that
    says nothing.
    """
    steps = replayed.get("steps") or [{}]
    reason = steps[-1].keys() & ENDS
    if not reason or "steps" not in recorded:
        return recorded, replayed
    before = len(steps) - 1
    left, right = (
        {key: value for key, value in side[before].items() if key in ENDS}
        for side in (recorded["steps"], steps)
    )
    return (
        {**recorded, "steps": [*recorded["steps"][:before], left]},
        {**replayed, "steps": [*steps[:before], right]},
    )
