"""What comes in over the wire: a pod's own bytes, and bytes that are no request."""

from __future__ import annotations

import pytest

from numalign.admission.received import ReceivedAdmit
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


def test_the_bytes_of_a_pod_in_a_stream_are_kept_as_they_came() -> None:
    pod = b"\x12\x00" + core_pb2.Pod(metadata=core_pb2.ObjectMeta(uid="u")).SerializeToString()
    request = b"\x0a" + bytes([len(pod)]) + pod

    received = ReceivedAdmit.from_stream(b"\x0a" + bytes([len(request)]) + request)

    assert received.pod == pod
    assert received.request.pod.metadata.uid == "u"


@pytest.mark.parametrize(
    ("data", "readable"),
    [
        pytest.param(b"", True, id="empty"),
        pytest.param(b"\xff\xff\xff", False, id="no-field"),
        pytest.param(b"\x0a\x03\xff\xff\xff", False, id="no-request"),
    ],
)
def test_what_is_no_pod_of_a_stream_has_no_pod(data: bytes, readable: bool) -> None:
    received = ReceivedAdmit.from_stream(data)

    assert received.readable is readable
    assert received.pod == b""
