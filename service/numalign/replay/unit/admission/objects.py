"""Pods and nodes of admission recordings, as the handlers see them."""

from __future__ import annotations

from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.node_view import NodeView
from numalign.admission.handlers.verdict import Verdict
from numalign.admission.pod_messages import admit_pod, node_view
from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_decode import read_pod
from numalign.kube.pod_json import node_from_json, pod_from_json
from numalign.replay.recordings import Json


def pod_message(given: Json) -> core_pb2.Pod:
    """A recorded pod as a message."""
    return pod_from_json(given)


def pod_of(given: Json) -> AdmitPod:
    """A recorded pod; what a check of the API would find wrong with it does not matter here."""
    message = pod_from_json(given)
    return admit_pod(message, read_pod(message)[0])


def node_of(given: Json | None) -> NodeView | None:
    """A recorded node; None for one that cannot be read."""
    return None if given is None else node_view(node_from_json(given))


def verdict_answer(verdict: Verdict) -> Json:
    """A verdict as recorded."""
    return {"admit": verdict.admit, "reason": verdict.reason, "message": verdict.message}
