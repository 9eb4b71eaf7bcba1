"""QoS classes and effective resources against the recordings of the kubelet.

The pods go the whole way: from JSON to a message, to its bytes, and to the value.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_decode import parse_pod, read_pod
from numalign.kube.pod_json import pod_from_json, pod_to_json
from numalign.model.feature_gates import FeatureGates
from numalign.model.ids import PodUid
from numalign.model.pod import Pod
from numalign.model.pod_resources import (
    containers_limits,
    containers_requests,
    pod_level_resources_set,
    pod_limits,
    pod_requests,
)
from numalign.model.qos import compute_qos_class, qos_class
from numalign.model.quantity import Quantity

_RECORDINGS = Path(__file__).parent / "recordings"
_GATES = FeatureGates()


def _lines(name: str) -> list[dict[str, Any]]:
    data = gzip.decompress((_RECORDINGS / f"{name}.jsonl.gz").read_bytes())
    return [json.loads(line) for line in data.splitlines()]


def _pod(obj: Mapping[str, Any]) -> Pod:
    ignored: list[str] = []
    message = pod_from_json(obj, ignored=ignored)
    assert ignored == []
    pod, _ = read_pod(parse_pod(message.SerializeToString()))
    return pod


def _shown(amounts: Mapping[str, Quantity]) -> dict[str, Any]:
    return {
        name: {
            "value": quantity.value(),
            "milli_value": quantity.milli_value(),
            "canonical": quantity.canonical(),
        }
        for name, quantity in amounts.items()
    }


def _answer(pod: Pod) -> dict[str, Any]:
    return {
        "compute_pod_qos": compute_qos_class(pod, _GATES),
        "get_pod_qos": qos_class(pod, _GATES),
        "requests": _shown(pod_requests(pod, _GATES)),
        "limits": _shown(pod_limits(pod, _GATES)),
        "requests_containers_only": _shown(containers_requests(pod)),
        "limits_containers_only": _shown(containers_limits(pod)),
        "pod_level_resources_set": pod_level_resources_set(pod),
    }


def test_answers_as_recorded() -> None:
    cases = _lines("unit/pod_resources")
    wrong = []
    for case in cases:
        answer = _answer(_pod(case["input"]["pod"]))
        wrong += [
            (case["id"], key, expected, answer[key])
            for key, expected in case["expected"].items()
            if answer[key] != expected
        ]

    assert len(cases) > 200
    assert {key for case in cases for key in case["expected"]} == set(_answer(Pod(uid=PodUid("u"))))
    assert wrong == []


@pytest.mark.parametrize("name", ["unit/pod_resources", "scenarios/pods", "scenarios/pod_level"])
def test_recorded_pods_survive_the_way_to_a_message_and_back(name: str) -> None:
    pods = [
        pod
        for line in _lines(name)
        for pod in (
            [line["input"]["pod"]]
            if "input" in line
            else [step["pod"] for step in line.get("steps", ()) if step["op"] == "admit"]
        )
    ]

    assert len(pods) > 10
    for obj in pods:
        message = pod_from_json(obj)
        assert pod_from_json(pod_to_json(message)) == message
        assert core_pb2.Pod.FromString(message.SerializeToString()) == message
