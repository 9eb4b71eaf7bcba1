"""Runners of `quantity` and `pod_resources` records."""

from __future__ import annotations

from collections.abc import Mapping

from numalign.kube.pod_decode import parse_pod, read_pod
from numalign.kube.pod_json import pod_from_json
from numalign.model.feature_gates import FeatureGates
from numalign.model.pod_resources import (
    containers_limits,
    containers_requests,
    pod_level_resources_set,
    pod_limits,
    pod_requests,
)
from numalign.model.qos import compute_qos_class, qos_class
from numalign.model.quantity import Quantity, QuantitySyntaxError, is_whole_cpus
from numalign.replay.recordings import Json

_DEFAULT_GATES = FeatureGates()


def quantity_answer(record: Json) -> Json:
    """A quantity read and seen from every side, or the error."""
    try:
        quantity = Quantity.parse(record["input"]["text"])
    except QuantitySyntaxError as error:
        return {"error": str(error)}
    return {
        "value": quantity.value(),
        "milli_value": quantity.milli_value(),
        "as_int64": quantity.as_int64(),
        "sign": quantity.sign(),
        "is_zero": quantity.is_zero(),
        "format": quantity.format.value,
        "canonical": quantity.canonical(),
        "whole_cpus": is_whole_cpus(quantity),
    }


def pod_resources_answer(record: Json) -> Json:
    """QoS classes and effective resources of a pod that went through its wire form."""
    message = pod_from_json(record["input"]["pod"])
    pod, _ = read_pod(parse_pod(message.SerializeToString()))
    return {
        "compute_pod_qos": compute_qos_class(pod, _DEFAULT_GATES),
        "get_pod_qos": qos_class(pod, _DEFAULT_GATES),
        "requests": _amounts(pod_requests(pod, _DEFAULT_GATES)),
        "limits": _amounts(pod_limits(pod, _DEFAULT_GATES)),
        "requests_containers_only": _amounts(containers_requests(pod)),
        "limits_containers_only": _amounts(containers_limits(pod)),
        "pod_level_resources_set": pod_level_resources_set(pod),
    }


def _amounts(amounts: Mapping[str, Quantity]) -> Json:
    return {
        name: {
            "value": quantity.value(),
            "milli_value": quantity.milli_value(),
            "canonical": quantity.canonical(),
        }
        for name, quantity in amounts.items()
    }
