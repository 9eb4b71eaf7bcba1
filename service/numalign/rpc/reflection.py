"""Server reflection, loaded when somebody first asks.

Separate from the server, because a node's server is asked for its descriptors by a human with
a command line tool, or never; so it costs nothing until then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc

_V1ALPHA = "grpc.reflection.v1alpha.ServerReflection"
# The same messages under the name that newer tools ask for first.
_V1 = "grpc.reflection.v1.ServerReflection"
_PATHS = frozenset(f"/{service}/ServerReflectionInfo" for service in (_V1, _V1ALPHA))


class LazyReflection(grpc.GenericRpcHandler):
    """Answers reflection for `services` in both versions of its protocol."""

    def __init__(self, services: Sequence[str]) -> None:
        self._services = (*services, _V1, _V1ALPHA)
        self._handler: Any = None

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """The handler of a reflection call; None for every other call."""
        if handler_call_details.method not in _PATHS:
            return None
        if self._handler is None:
            self._handler = _load(self._services)
        return self._handler


def _load(services: Sequence[str]) -> Any:
    from grpc_reflection.v1alpha import reflection, reflection_pb2  # noqa: PLC0415  costs memory

    servicer = reflection.aio.ReflectionServicer(services)
    return grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        reflection_pb2.ServerReflectionRequest.FromString,
        reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
