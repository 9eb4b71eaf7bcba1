"""Registering the Admission service so that a pod's own bytes survive the way in.

The generated registration would parse an AdmitRequest and forget how its pod was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import grpc
from grpc import aio

from numalign.admission.servicer import AdmissionServicer, ReceivedAdmit
from numalign.v1.admission_pb2 import DESCRIPTOR
from numalign.v1.admission_pb2_grpc import add_AdmissionServicer_to_server

_SERVICE = DESCRIPTOR.services_by_name["Admission"].full_name


def add_admission_to_server(servicer: AdmissionServicer, server: aio.Server) -> None:
    """Add `servicer` to a server, remote or local, as the generated function does."""
    generated = _Generated()
    add_AdmissionServicer_to_server(servicer, cast("aio.Server", generated))
    handlers = dict(generated.handlers)
    admit = handlers["Admit"]
    handlers["Admit"] = grpc.unary_unary_rpc_method_handler(
        servicer.Admit,
        request_deserializer=ReceivedAdmit.from_wire,
        response_serializer=admit.response_serializer,
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, handlers),))
    server.add_registered_method_handlers(_SERVICE, handlers)


class _Generated:
    """Takes the handlers that the generated function would have a server take."""

    def __init__(self) -> None:
        self.handlers: Mapping[str, grpc.RpcMethodHandler[Any, Any]] = {}

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Leave this form out: the registered handlers below are the same methods."""

    def add_registered_method_handlers(
        self, service: str, handlers: Mapping[str, grpc.RpcMethodHandler[Any, Any]]
    ) -> None:
        """Take the handlers."""
        del service
        self.handlers = handlers
