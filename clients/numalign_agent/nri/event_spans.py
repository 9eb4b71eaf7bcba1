"""The span of an event of the runtime: the root of the trace of what is done about it.

Separate from the events' handlers, which know no spans.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from grpc import StatusCode

from numalign.kube.nri.v1alpha1 import api_pb2 as nri
from numalign_agent.nri.wire.errors import CallFailed
from numalign_agent.spans import pod_span

T = TypeVar("T")


async def in_span(
    event: str, pod: nri.PodSandbox, handling: Awaitable[T], *, container: str = ""
) -> T:
    """Handle an event about a pod, or a container of it, inside of a span.

    That a pod must not start is an answer: the span is not failed by it.
    """
    with pod_span(f"nri {event}", pod.uid, pod.namespace, pod.name, container):
        try:
            return await handling
        except CallFailed as error:
            if error.code is not StatusCode.FAILED_PRECONDITION:
                raise
            refused = error
    raise refused
