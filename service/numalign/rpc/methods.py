"""Which methods a servicer serves: collected once, before anything is served.

Separate from the servers, because a socket and the inside of the process serve the same
servicers: `add_XServicer_to_server` fills a collector here, and what it collected goes,
wrapped, to either.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import grpc
from grpc import aio

from numalign.rpc.context import Context

Behaviour = Callable[[Any, Any], Any]
"""A servicer's method: request (or its iterator) and context in."""


@dataclass(frozen=True, slots=True)
class Registration:
    """A servicer and the generated function that adds it to a server.

    `deserializers` replace, by method name, how a request that comes over a socket is read;
    for a servicer that wants the caller's own bytes.
    """

    add: Callable[[Any, aio.Server], None]
    servicer: object
    deserializers: Mapping[str, Callable[[bytes], object]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One method. `path` is `/package.Service/Method`; `behaviour` is asynchronous."""

    service: str
    name: str
    behaviour: Behaviour
    request_streaming: bool
    response_streaming: bool
    request_deserializer: Callable[[bytes], object] | None
    response_serializer: Callable[[Any], bytes] | None

    @property
    def path(self) -> str:
        """The full name, as it travels."""
        return f"/{self.service}/{self.name}"


def collect(registrations: Iterable[Registration]) -> tuple[Method, ...]:
    """Every method of every servicer.

    Raises TypeError for a method that is not asynchronous, for a servicer that registered
    nothing, and for a service that is registered twice. A method that the servicer leaves to
    its generated base answers UNIMPLEMENTED.
    """
    collector = _Collector()
    for registration in registrations:
        before = len(collector.methods)
        collector.deserializers = registration.deserializers
        registration.add(registration.servicer, collector)
        if len(collector.methods) == before:
            raise TypeError(f"{registration.servicer!r} registered no method")
    return tuple(collector.methods)


def to_handlers(methods: Iterable[Method]) -> dict[str, dict[str, Any]]:
    """The methods as grpc's own handlers, by service and name."""
    handlers: dict[str, dict[str, Any]] = {}
    for method in methods:
        make: Any
        match method.request_streaming, method.response_streaming:
            case False, False:
                make = grpc.unary_unary_rpc_method_handler
            case False, True:
                make = grpc.unary_stream_rpc_method_handler
            case True, False:
                make = grpc.stream_unary_rpc_method_handler
            case _:
                make = grpc.stream_stream_rpc_method_handler
        handlers.setdefault(method.service, {})[method.name] = make(
            method.behaviour, method.request_deserializer, method.response_serializer
        )
    return handlers


class _Collector(aio.Server):
    """Looks like a server to generated code."""

    def __init__(self) -> None:
        self.methods: list[Method] = []
        self.deserializers: Mapping[str, Callable[[bytes], object]] = {}
        self._services: set[str] = set()

    def add_generic_rpc_handlers(self, generic_rpc_handlers: Iterable[Any]) -> None:
        """Generated code gives the same handlers to `add_registered_method_handlers`."""

    def add_registered_method_handlers(
        self, service_name: str, method_handlers: Mapping[str, Any]
    ) -> None:
        """Take the handlers of one service."""
        if service_name in self._services:
            raise TypeError(f"service {service_name} is registered twice")
        self._services.add(service_name)
        for name, handler in method_handlers.items():
            self.methods.append(self._method(service_name, name, handler))

    def _method(self, service: str, name: str, handler: Any) -> Method:
        behaviour = (
            handler.unary_unary
            or handler.unary_stream
            or handler.stream_unary
            or handler.stream_stream
        )
        streams = bool(handler.response_streaming)
        if getattr(behaviour, "__module__", "").endswith("_pb2_grpc"):
            behaviour = _unimplemented_stream if streams else _unimplemented
        elif not _is_asynchronous(behaviour, streams=streams):
            raise TypeError(f"/{service}/{name}: {behaviour!r} is not asynchronous")
        return Method(
            service=service,
            name=name,
            behaviour=behaviour,
            request_streaming=bool(handler.request_streaming),
            response_streaming=streams,
            request_deserializer=self.deserializers.get(name, handler.request_deserializer),
            response_serializer=handler.response_serializer,
        )

    def add_insecure_port(self, address: str) -> NoReturn:
        """Not a server that listens."""
        raise NotImplementedError(address)

    def add_secure_port(self, address: str, server_credentials: object) -> NoReturn:
        """Not a server that listens."""
        raise NotImplementedError(address, server_credentials)

    async def start(self) -> NoReturn:
        """Not a server that runs."""
        raise NotImplementedError

    async def stop(self, grace: float | None) -> NoReturn:
        """Not a server that runs."""
        raise NotImplementedError(grace)

    async def wait_for_termination(self, timeout: float | None = None) -> NoReturn:
        """Not a server that runs."""
        raise NotImplementedError(timeout)


def _is_asynchronous(behaviour: Behaviour, *, streams: bool) -> bool:
    if streams:
        return inspect.isasyncgenfunction(behaviour)
    return inspect.iscoroutinefunction(behaviour)


async def _unimplemented(request: object, context: Context) -> NoReturn:
    del request
    await context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not implemented!")


async def _unimplemented_stream(request: object, context: Context) -> AsyncIterator[object]:
    responses: tuple[object, ...] = ()
    for response in responses:
        yield response
    await _unimplemented(request, context)
