"""Requests as both clients send them.

Separate from the clients because an Admit request is put together byte by byte: numalign hands
a pod on to its providers as the caller wrote it, so a v1.Pod that came as bytes is not parsed
and written anew on the way.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import TypeAlias, cast

from grpc import StatusCode

from numalign.errors import InvalidInput
from numalign.kube.core.v1 import core_pb2
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import claims_pb2 as cl
from numalign.v1 import types_pb2 as pb
from numalign_client.errors import InvalidRequest, Violation

ADMIT = "/numalign.v1.Admission/Admit"
ADMIT_PODS = "/numalign.v1.Admission/AdmitPods"
SIMULATE = "/numalign.v1.Admission/Simulate"

Pod: TypeAlias = core_pb2.Pod | Mapping[str, object] | bytes
"""A pod: the message, a decoded JSON object as the API server gives it, or a v1.Pod's bytes."""

_POD_TAG = bytes([ad.AdmitRequest.POD_FIELD_NUMBER << 3 | 2])
_ADMIT_TAG = bytes([ad.AdmitPodsRequest.ADMIT_FIELD_NUMBER << 3 | 2])
_SIMULATED_TAG = bytes([ad.SimulateRequest.PODS_FIELD_NUMBER << 3 | 2])
_OTHER_TAG = bytes([ad.AdmitRequest.OTHER_PODS_FIELD_NUMBER << 3 | 2])


class Explain(StrEnum):
    """How much an answer says about the way it was reached."""

    NONE = "none"
    SUMMARY = "summary"
    FULL = "full"


_LEVELS: Mapping[Explain, pb.ExplainLevel.ValueType] = {
    Explain.NONE: pb.EXPLAIN_LEVEL_NONE,
    Explain.SUMMARY: pb.EXPLAIN_LEVEL_SUMMARY,
    Explain.FULL: pb.EXPLAIN_LEVEL_FULL,
}


def explain_level(explain: Explain | str) -> pb.ExplainLevel.ValueType:
    """The level by its name. Raises ValueError naming the levels there are."""
    level = _LEVELS.get(cast("Explain", explain))
    if level is None:
        choices = ", ".join(_LEVELS)
        raise ValueError(f"explain must be one of {choices}, not {explain!r}")
    return level


def admit_bytes(
    pod: Pod,
    *,
    dry_run: bool,
    explain: Explain | str,
    owner: str,
    resize: bool,
    other_pods: Iterable[Pod] = (),
    preempted_pod_uids: Iterable[str] = (),
    can_read_node: bool = False,
    fresh_node: core_pb2.Node | None = None,
    needs_node: bool = False,
    claims: Iterable[cl.FetchedClaim] = (),
    only_in_order: bool = False,
) -> bytes:
    """A serialised AdmitRequest that holds the pods' own bytes.

    Raises InvalidRequest for a mapping that is no pod, naming every field, TypeError for what
    is no pod at all, and ValueError for an explain level that does not exist.
    """
    rest = ad.AdmitRequest(
        operation=pb.OPERATION_RESIZE if resize else pb.OPERATION_ADD,
        owner=owner,
        dry_run=dry_run,
        explain=explain_level(explain),
        preempted_pod_uids=preempted_pod_uids,
        can_read_node=can_read_node,
        fresh_node=fresh_node,
        needs_node=needs_node,
        claims=claims,
        only_in_order=only_in_order,
    ).SerializeToString()
    others = (_field(_OTHER_TAG, pod_bytes(other)) for other in other_pods)
    return b"".join((_field(_POD_TAG, pod_bytes(pod)), *others, rest))


def pods_item(request: bytes) -> bytes:
    """A serialised AdmitPodsRequest around a serialised AdmitRequest."""
    return _field(_ADMIT_TAG, request)


def simulate_bytes(pods: Iterable[bytes], rest: ad.SimulateRequest) -> bytes:
    """A serialised SimulateRequest around the bytes of pods; `rest` is everything else of it."""
    return b"".join((*(_field(_SIMULATED_TAG, pod) for pod in pods), rest.SerializeToString()))


def pod_bytes(pod: Pod) -> bytes:
    """The bytes of a v1.Pod. Raises InvalidRequest for a mapping that is no pod."""
    if isinstance(pod, bytes):
        return pod
    if isinstance(pod, core_pb2.Pod):
        return pod.SerializeToString()
    if not isinstance(pod, Mapping):
        raise TypeError(
            "a pod must be a message, a mapping or bytes here, not "
            f"{type(pod).__name__}; numalign_client.Client takes YAML and files, too"
        )
    from numalign.kube.pod_json import pod_from_json

    with invalid_requests():
        return pod_from_json(pod).SerializeToString()


@contextmanager
def invalid_requests() -> Generator[None]:
    """Raise what is found wrong with a request before it is sent as the service would."""
    try:
        yield
    except InvalidInput as error:
        violations = tuple(Violation(v.field, v.description) for v in error.violations)
        raise InvalidRequest(StatusCode.INVALID_ARGUMENT, str(error), violations) from error


def _field(tag: bytes, data: bytes) -> bytes:
    return b"".join((tag, _varint(len(data)), data))


def _varint(number: int) -> bytes:
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)
