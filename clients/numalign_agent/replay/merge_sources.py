"""Plays `merge_sources` recordings: sets of pods in, messages to the sync loop out."""

from __future__ import annotations

from numalign.replay.players import Player
from numalign.replay.recordings import Json
from numalign_agent.changes import Operation, PodChange
from numalign_agent.merging.merge import Table, merge
from numalign_agent.merging.merger import duplicate_text
from numalign_agent.pod import AgentPod

_TIME = "<time>"


def _answer(record: Json) -> object:
    tables: dict[str, Table] = {}
    steps = []
    for given in record["input"]["sets"]:
        source = given["source"]
        pods = [AgentPod(pod) for pod in given["pods"]]
        merged = merge(source, tables.get(source), pods, _TIME)
        tables[source] = merged.table
        steps.append(
            {
                "messages": [_message(change) for change in merged.changes],
                "events": [_event(pod, source) for pod in merged.duplicates],
            }
        )
    return {"steps": steps}


def _message(change: PodChange) -> Json:
    pods = list(change.pods)
    if change.operation is Operation.REMOVE:  # recorded in this order; the kubelet has none
        pods.sort(key=lambda pod: pod.uid)
    return {
        "op": change.operation.value,
        "source": change.source,
        "pods": [dict(pod.document) for pod in pods],
    }


def _event(pod: AgentPod, source: str) -> Json:
    return {
        "uid": pod.uid,
        "type": "Warning",
        "reason": "FailedValidation",
        "text": duplicate_text(pod, source),
    }


PLAYER = Player(answer=_answer, expected=lambda record: record["expected"])
