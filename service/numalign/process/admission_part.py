"""The Admission service, put together from its settings and the Topology Manager's channel."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from grpc import aio

from numalign.admission.observer import AnswerObserver
from numalign.admission.pod_resources.mirror import AdmissionMirror
from numalign.admission.received import ReceivedAdmit
from numalign.admission.servicer import AdmissionServicer, Simulator
from numalign.config.settings import Service, Settings
from numalign.process.admission_changes import ChainLife
from numalign.process.decision_journal import open_journal
from numalign.process.part import OwnSocket, Part
from numalign.rpc.methods import Registration
from numalign.telemetry.metrics import Metrics
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import topology_pb2_grpc as tm_grpc
from numalign.v1.admission_pb2_grpc import add_AdmissionServicer_to_server

if TYPE_CHECKING:
    from numalign.process.simulating import Simulations

HEALTH_NAME = "numalign.v1.Admission"


def admission_part(
    settings: Settings,
    topology: aio.Channel,
    metrics: Metrics,
    topology_ready: Callable[[], Awaitable[None]],
) -> Part:
    """The Admission service over `topology`, a channel to the Topology Manager.

    It is ready when `topology_ready` ends: it can decide nothing before. With `podResources`
    configured, it also has the socket of the kubelet's interface.
    """
    stub = tm_grpc.TopologyManagerStub(topology)
    mirror = AdmissionMirror(stub)
    life = ChainLife(settings, stub, metrics)
    chain = life.chain
    journal = open_journal(settings, stub, metrics)

    def answered(revision: int) -> None:
        mirror.answered(revision)
        chain.answered(revision)

    servicer = AdmissionServicer(
        stub,
        settings.owner,
        AnswerObserver(metrics),
        answered,
        chain,
        journal,
        _simulator(settings, topology),
    )

    async def close_all() -> None:
        await life.close()
        if journal is not None:
            await journal.close()

    part = Part(
        service=Service.ADMISSION,
        registration=Registration(
            add_AdmissionServicer_to_server,
            servicer,
            deserializers={
                "Admit": ReceivedAdmit.from_wire,
                "AdmitPods": ReceivedAdmit.from_stream,
            },
        ),
        health_name=HEALTH_NAME,
        ready=topology_ready,
        serving=life.serving,
        check=life.check,
        close=close_all,
    )
    if settings.pod_resources is None:
        return part

    async def serving() -> None:
        await part.serving()
        mirror.start()

    async def close() -> None:
        await mirror.close()
        await part.close()

    return replace(
        part,
        serving=serving,
        close=close,
        sockets=(_pod_resources_socket(settings.pod_resources, mirror, stub, metrics),),
    )


def _simulator(settings: Settings, topology: aio.Channel) -> Simulator:
    """What answers simulations: imported when the first one comes, since most nodes have none."""
    made: list[Simulations] = []

    async def answers(request: ad.SimulateRequest) -> AsyncGenerator[ad.SimulateResponse]:
        if not made:
            from numalign.process.simulating import Simulations  # noqa: PLC0415 - memory

            made.append(Simulations(settings, topology))
        async with aclosing(made[0].answers(request)) as parts:
            async for part in parts:
                yield part

    return answers


def _pod_resources_socket(
    path: Path,
    mirror: AdmissionMirror,
    topology: tm_grpc.TopologyManagerAsyncStub,
    metrics: Metrics,
) -> OwnSocket:
    from numalign.admission.pod_resources.rate_limit import TokenBucket  # noqa: PLC0415 - memory
    from numalign.admission.pod_resources.record_source import RecordSource  # noqa: PLC0415
    from numalign.admission.pod_resources.servicer import (  # noqa: PLC0415
        AlphaPodResourcesServicer,
        PodResourcesServicer,
    )
    from numalign.kube.podresources.v1 import api_pb2_grpc as v1_grpc  # noqa: PLC0415
    from numalign.kube.podresources.v1alpha1 import api_pb2_grpc as v1alpha1_grpc  # noqa: PLC0415

    source = RecordSource(mirror, topology)
    limit = TokenBucket(time.monotonic)
    return OwnSocket(
        path,
        (
            Registration(
                v1_grpc.add_PodResourcesListerServicer_to_server,
                PodResourcesServicer(source, limit, metrics),
            ),
            Registration(
                v1alpha1_grpc.add_PodResourcesListerServicer_to_server,
                AlphaPodResourcesServicer(source, limit, metrics),
            ),
        ),
    )
