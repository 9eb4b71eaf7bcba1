"""The Admission service, put together from its settings and the Topology Manager's channel."""

from __future__ import annotations

from grpc import aio

from numalign.admission.registration import add_admission_to_server
from numalign.admission.servicer import AdmissionServicer
from numalign.config.settings import Service, Settings
from numalign.process.part import Part
from numalign.v1.topology_pb2_grpc import TopologyManagerStub

HEALTH_NAME = "numalign.v1.Admission"


def admission_part(settings: Settings, topology: aio.Channel) -> Part:
    """The Admission service over `topology`, a channel to the Topology Manager."""
    servicer = AdmissionServicer(TopologyManagerStub(topology), settings.owner)
    return Part(
        service=Service.ADMISSION,
        register=lambda server: add_admission_to_server(servicer, server),
        health_name=HEALTH_NAME,
    )
