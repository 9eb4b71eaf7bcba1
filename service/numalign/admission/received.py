"""An Admit call as it came in.

Separate from the servicer, because the pod's own bytes are handed on as they stand on the wire.
"""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import DecodeError

from numalign.rpc.wire import field_bytes
from numalign.v1 import admission_pb2 as ad

_POD_FIELD = ad.AdmitRequest.POD_FIELD_NUMBER
_ADMIT_FIELD = ad.AdmitPodsRequest.ADMIT_FIELD_NUMBER


@dataclass(frozen=True, slots=True)
class ReceivedAdmit:
    """An Admit call as it came in: the message, and the pod's own bytes.

    `readable` is False for bytes that are no AdmitRequest: they are refused when the call is
    answered, where a refusal can say what is wrong.
    """

    request: ad.AdmitRequest
    pod: bytes
    readable: bool = True

    @classmethod
    def from_wire(cls, data: bytes) -> ReceivedAdmit:
        """Parse a serialised AdmitRequest."""
        try:
            request = ad.AdmitRequest.FromString(data)
        except DecodeError:
            return cls(ad.AdmitRequest(), b"", readable=False)
        return cls(request, field_bytes(data, _POD_FIELD) or b"")

    @classmethod
    def from_stream(cls, data: bytes) -> ReceivedAdmit:
        """Parse a serialised AdmitPodsRequest."""
        try:
            return cls.from_wire(field_bytes(data, _ADMIT_FIELD) or b"")
        except ValueError:
            return cls(ad.AdmitRequest(), b"", readable=False)

    @classmethod
    def from_message(cls, request: ad.AdmitRequest) -> ReceivedAdmit:
        """Take a request that never was on a wire."""
        return cls(request, request.pod.SerializeToString(deterministic=True))
