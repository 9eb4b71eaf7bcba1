"""A receiver of spans: the part of an OpenTelemetry collector that the demonstration needs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import grpc
from grpc import aio
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as otlp
from opentelemetry.proto.trace.v1 import trace_pb2

from numalign.cli.demo.spans import Kind, SpanRecord, is_complete

_SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"
_SERVICE_NAME = "service.name"
_KINDS: Mapping[int, Kind] = {
    trace_pb2.Span.SPAN_KIND_CLIENT: Kind.CLIENT,
    trace_pb2.Span.SPAN_KIND_SERVER: Kind.SERVER,
}
_QUIET_SECONDS = 0.3


class SpanReceiver:
    """Keeps every span that it is sent, by trace."""

    def __init__(self) -> None:
        self._traces: dict[str, list[SpanRecord]] = {}

    async def export(
        self,
        request: otlp.ExportTraceServiceRequest,
        context: aio.ServicerContext[Any, Any],
    ) -> otlp.ExportTraceServiceResponse:
        """Take in a batch."""
        del context
        for trace_id, record in records_of(request):
            self._traces.setdefault(trace_id, []).append(record)
        return otlp.ExportTraceServiceResponse()

    async def trace(self, trace_id: str, root_id: str, patience: float) -> tuple[SpanRecord, ...]:
        """The spans of a trace, once it is complete and quiet, or `patience` seconds are over."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience
        seen, quiet_since = 0, loop.time()
        while loop.time() < deadline:
            spans = self._traces.get(trace_id, [])
            if len(spans) != seen:
                seen, quiet_since = len(spans), loop.time()
            elif is_complete(spans, root_id) and loop.time() - quiet_since >= _QUIET_SECONDS:
                break
            await asyncio.sleep(0.05)
        return tuple(self._traces.get(trace_id, ()))


def records_of(request: otlp.ExportTraceServiceRequest) -> list[tuple[str, SpanRecord]]:
    """The spans of a batch, each with the id of its trace."""
    records = []
    for resource in request.resource_spans:
        service = next(
            (a.value.string_value for a in resource.resource.attributes if a.key == _SERVICE_NAME),
            "",
        )
        for scope in resource.scope_spans:
            for span in scope.spans:
                record = SpanRecord(
                    span_id=span.span_id.hex(),
                    parent_id=span.parent_span_id.hex(),
                    service=service,
                    name=span.name,
                    kind=_KINDS.get(span.kind, Kind.INNER),
                    start=span.start_time_unix_nano,
                    end=span.end_time_unix_nano,
                )
                records.append((span.trace_id.hex(), record))
    return records


@asynccontextmanager
async def receiving() -> AsyncGenerator[tuple[SpanReceiver, str]]:
    """A receiver on a free local port, and its endpoint."""
    receiver = SpanReceiver()
    server = aio.server()
    export = grpc.unary_unary_rpc_method_handler(
        receiver.export,
        request_deserializer=otlp.ExportTraceServiceRequest.FromString,
        response_serializer=otlp.ExportTraceServiceResponse.SerializeToString,
    )
    server.add_registered_method_handlers(_SERVICE, {"Export": export})
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield receiver, f"http://127.0.0.1:{port}"
    finally:
        await server.stop(0)
