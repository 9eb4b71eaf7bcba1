"""One field taken out of a serialised message without parsing the rest."""

from __future__ import annotations

import json

from google.protobuf.message import DecodeError
from tests.fuzz.recorded import pods
from tests.fuzz.target import Target

from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_json import pod_from_json
from numalign.rpc.wire import field_bytes
from numalign.v1 import admission_pb2 as ad

POD = ad.AdmitRequest.DESCRIPTOR.fields_by_name["pod"].number


def run(data: bytes) -> None:
    """Take the pod out of a request: what a full parser reads it finds too.

    Only what the full parser refuses may it refuse.
    """
    try:
        request = ad.AdmitRequest.FromString(data)
    except DecodeError:
        field_bytes(data, POD)
        return
    try:
        found = field_bytes(data, POD)
    except ValueError as error:
        raise AssertionError("refuses what protobuf reads") from error
    assert (found is not None) == request.HasField("pod")
    assert core_pb2.Pod.FromString(found or b"") == request.pod


def _seeds() -> tuple[bytes, ...]:
    messages = [pod_from_json(json.loads(text)) for text in pods(20)]
    return (
        *tuple(
            ad.AdmitRequest(pod=message, owner="o", dry_run=True).SerializeToString()
            for message in messages
        ),
        b"\x0b\x10\x01\x0c",
        b"\x83\x01\n\x00\x84\x01",
    )


TARGET = Target(
    name="wire",
    run=run,
    documented=(ValueError,),
    seeds=_seeds(),
)
