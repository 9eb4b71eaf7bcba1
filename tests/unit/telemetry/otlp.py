"""A receiver of OTLP over gRPC, as a collector is one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

import grpc
from opentelemetry.proto.collector.trace.v1 import (
    trace_service_pb2,
    trace_service_pb2_grpc,
)


class Receiver(trace_service_pb2_grpc.TraceServiceServicer):
    """Collects spans; `endpoint` is where. It listens in the network of who makes it."""

    def __init__(self, address: str = "127.0.0.1:0") -> None:
        self.requests: list[Any] = []
        self._server = grpc.server(ThreadPoolExecutor(2))
        add: Callable[[Any, Any], None] = trace_service_pb2_grpc.add_TraceServiceServicer_to_server
        add(self, self._server)
        self.endpoint = f"http://127.0.0.1:{self._server.add_insecure_port(address)}"

    def Export(self, request: Any, _: Any) -> Any:  # noqa: N802
        self.requests.append(request)
        return trace_service_pb2.ExportTraceServiceResponse()

    def spans(self) -> list[Any]:
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def resources(self) -> list[dict[str, str]]:
        return [
            {a.key: a.value.string_value for a in resource.resource.attributes}
            for request in self.requests
            for resource in request.resource_spans
        ]

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.stop(0).wait()


def attributes(span: Any) -> dict[str, Any]:
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in span.attributes}
