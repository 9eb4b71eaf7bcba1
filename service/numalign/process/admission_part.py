"""The Admission service, put together from its settings and the Topology Manager's channel."""

from __future__ import annotations

from grpc import aio

from numalign.admission.observer import AnswerObserver
from numalign.admission.servicer import AdmissionServicer, ReceivedAdmit
from numalign.config.settings import Service, Settings
from numalign.process.part import Part
from numalign.rpc.methods import Registration
from numalign.telemetry.metrics import Metrics
from numalign.v1.admission_pb2_grpc import add_AdmissionServicer_to_server
from numalign.v1.topology_pb2_grpc import TopologyManagerStub

HEALTH_NAME = "numalign.v1.Admission"


def admission_part(settings: Settings, topology: aio.Channel, metrics: Metrics) -> Part:
    """The Admission service over `topology`, a channel to the Topology Manager."""
    servicer = AdmissionServicer(
        TopologyManagerStub(topology), settings.owner, AnswerObserver(metrics)
    )
    return Part(
        service=Service.ADMISSION,
        registration=Registration(
            add_AdmissionServicer_to_server,
            servicer,
            deserializers={"Admit": ReceivedAdmit.from_wire},
        ),
        health_name=HEALTH_NAME,
    )
