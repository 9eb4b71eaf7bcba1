"""Between the values that a handler's author sees and the messages of the contract."""

from __future__ import annotations

from numalign.kube.core.v1 import core_pb2
from numalign.v1 import admit_handler_pb2 as ah
from numalign.v1 import types_pb2 as pb
from numalign_client.admit_handler.base import Admit, AdmitAttributes, Defer, Judgement, Reject


def attributes_of(request: ah.JudgeRequest) -> AdmitAttributes:
    """The question. Raises DecodeError for a pod or Node object that is none."""
    return AdmitAttributes(
        pod=core_pb2.Pod.FromString(request.pod),
        is_resize=request.operation == pb.OPERATION_RESIZE,
        dry_run=request.dry_run,
        node=core_pb2.Node.FromString(request.node) if request.node else None,
        node_conditions=tuple(request.node_conditions),
        shutting_down=request.shutting_down,
        other_pods=tuple(request.other_pods),
        allocated_devices=dict(request.allocated_devices),
    )


def response_of(judgement: Judgement) -> ah.JudgeResponse:
    """The answer. Raises TypeError for what is no judgement."""
    response = ah.JudgeResponse()
    match judgement:
        case None:
            response.admit.SetInParent()
        case Admit(victims, warnings):
            response.admit.SetInParent()
            response.admit.victim_pod_uids.extend(victims)
            response.warnings.extend(warnings)
        case Reject(reason, message, warnings):
            response.reject.reason, response.reject.message = reason, message
            response.warnings.extend(warnings)
        case Defer(reason, message, retry_after, warnings):
            response.defer.reason, response.defer.message = reason, message
            response.defer.retry_after.FromNanoseconds(round(retry_after * 1e9))
            response.warnings.extend(warnings)
        case _:
            raise TypeError(f"an Admit, a Reject, a Defer or None was expected, not {judgement!r}")
    return response
