"""Decoded JSON of a pod, with odd values in it."""

from __future__ import annotations

from tests.fuzz.bending import MOST_BYTES, bent, starts
from tests.fuzz.recorded import pods
from tests.fuzz.target import Target

from numalign.errors import InvalidInput
from numalign.kube.pod_decode import pod_from_message
from numalign.kube.pod_json import pod_from_json, pod_to_json

SEEDS = pods(60)


def run(data: bytes) -> None:
    """Read the pod, read it as a decision does, and read again what is written of it."""
    document = bent(SEEDS, data)
    if not isinstance(document, dict):
        return
    message = pod_from_json(document, ignored=[])
    assert pod_from_json(pod_to_json(message)) == message
    pod_from_message(message)


TARGET = Target(
    name="pod_json",
    run=run,
    documented=(InvalidInput,),
    seeds=starts(SEEDS),
    most_bytes=MOST_BYTES,
    counts=False,
)
