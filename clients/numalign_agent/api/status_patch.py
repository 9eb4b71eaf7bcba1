"""From the agent's own status of a pod to what the API server has to be told (STAT-3). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numalign_agent.pod import TERMINAL_PHASES
from numalign_agent.status.conditions import CONTAINERS_READY, OWNED, READY, condition_in, dated

Json = Mapping[str, Any]

_OF_THE_PHASE = ("phase", "reason", "message")


def status_patch(shown: Json, own: Json, *, may_run: bool, now: str) -> dict[str, Any]:
    """The strategic merge patch that makes `shown`, the API's status, say what `own` does.

    Empty if it does already. While containers could be running (`may_run`) an end of the pod is
    not told. `now` is the time as text.
    """
    told = _held_back(shown, own) if may_run else dict(own)
    told["conditions"] = _conditions(told, now)
    patch = {
        key: value
        for key, value in told.items()
        if key != "conditions" and _meant(shown.get(key)) != _meant(value)
    }
    # A reason is that of the phase: where the agent has none, an older one is wrong.
    patch |= {key: None for key in _OF_THE_PHASE if key in shown and key not in told}
    conditions = _condition_patch(shown.get("conditions") or (), told["conditions"])
    return {**patch, "conditions": conditions} if conditions else patch


def _held_back(shown: Json, own: Json) -> dict[str, Any]:
    if own.get("phase") not in TERMINAL_PHASES or shown.get("phase") in TERMINAL_PHASES:
        return dict(own)
    kept = {key: value for key, value in own.items() if key not in _OF_THE_PHASE}
    return kept | {key: shown[key] for key in _OF_THE_PHASE if key in shown}


def _conditions(told: Json, now: str) -> list[dict[str, Any]]:
    """The agent's conditions; no pod that has ended is ready."""
    own = [dict(condition) for condition in told.get("conditions") or ()]
    phase = told.get("phase")
    if phase not in TERMINAL_PHASES:
        return own
    reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
    ready = {READY, CONTAINERS_READY}
    return [
        dated({"type": condition["type"], "status": "False", "reason": reason}, (), now)
        if condition["type"] in ready and condition["status"] == "True"
        else condition
        for condition in own
    ]


def _condition_patch(shown: Sequence[Json], own: Sequence[Json]) -> list[dict[str, Any]]:
    """Changed conditions, and those of the agent's types that it has no more."""
    mine = {condition["type"] for condition in own}
    changed = [
        {**_removed_fields(condition, shown), **condition}
        for condition in own
        if _meant(condition_in({"conditions": shown}, condition["type"])) != _meant(condition)
    ]
    gone = [
        {"$patch": "delete", "type": old["type"]}
        for old in shown
        if old["type"] in OWNED and old["type"] not in mine
    ]
    return changed + gone


def _removed_fields(condition: Json, shown: Sequence[Json]) -> dict[str, None]:
    """Nulls for what the API's condition says and the agent's does not: it is merged."""
    old = condition_in({"conditions": shown}, condition["type"]) or {}
    return {key: None for key in old if key not in condition}


def _meant(value: Any) -> Any:  # noqa: ANN401 - of any type
    """The value without what says the same as nothing: a server adds and drops such fields."""
    if isinstance(value, Mapping):
        meant = {key: _meant(inner) for key, inner in value.items()}
        return {key: inner for key, inner in meant.items() if inner} or None
    if isinstance(value, list | tuple):
        return [_meant(item) for item in value] or None
    return value or None
