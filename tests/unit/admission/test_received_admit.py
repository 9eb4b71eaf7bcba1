"""What comes in over the wire: a pod's own bytes, and bytes that are no request."""

from __future__ import annotations

import pytest

from numalign.admission.servicer import ReceivedAdmit
from numalign.kube.core.v1 import core_pb2
from numalign.v1 import admission_pb2 as ad


def test_the_pods_bytes_are_kept_as_they_came() -> None:
    # Field 2 before field 1: an order that no serializer of ours would write.
    pod = b"\x12\x00" + core_pb2.Pod(metadata=core_pb2.ObjectMeta(uid="u")).SerializeToString()
    data = b"\x0a" + bytes([len(pod)]) + pod

    received = ReceivedAdmit.from_wire(data)

    assert received.pod == pod
    assert received.readable
    assert received.request.pod.metadata.uid == "u"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\xff\xff\xff", id="no-field"),
        pytest.param(b"\x0a\x05\x61\x62", id="cut-off"),
    ],
)
def test_bytes_that_are_no_request_are_told_apart(data: bytes) -> None:
    received = ReceivedAdmit.from_wire(data)

    assert not received.readable
    assert received.pod == b""
    assert received.request == ad.AdmitRequest()
