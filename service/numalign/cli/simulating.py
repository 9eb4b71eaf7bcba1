"""A simulation by the node itself: the Simulate call of its Admission service.

Separate from the command, which also simulates nodes that are files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grpc import StatusCode, aio

from numalign.cli.calls import Unreachable, answer, ask_services, channel_to
from numalign.cli.endpoint import Endpoint
from numalign.cli.options import current_reach
from numalign.config.settings import Service
from numalign.errors import Unavailable
from numalign.v1 import admission_pb2 as ad
from numalign.v1.admission_pb2_grpc import AdmissionStub


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What would come of each pod. `names` are those of the admitted pods, by uid."""

    pods: Sequence[ad.SimulatedPod]
    names: Mapping[str, str]
    notes: tuple[str, ...]


def ask_to_simulate(request: ad.SimulateRequest) -> Simulation | None:
    """Have the node that runs simulate; None where its Admission service cannot, or is down.

    Raises as `ask_services` does, AioRpcError, and Unavailable where no answer comes in time.
    """
    seconds = current_reach().timeout
    try:
        return ask_services(
            lambda services: _simulation(services[Service.ADMISSION], request, seconds),
            Service.ADMISSION,
        )
    except Unreachable:
        # The others are enough for a copy, and who copies them says who is missing.
        return None
    except aio.AioRpcError as error:
        if error.code() is StatusCode.UNIMPLEMENTED:
            return None
        raise


async def _simulation(
    endpoint: Endpoint, request: ad.SimulateRequest, seconds: float
) -> Simulation:
    pods: list[ad.SimulatedPod] = []
    notes: tuple[str, ...] = ()
    async with channel_to(endpoint) as channel:
        stub = AdmissionStub(channel)
        call = stub.Simulate(request)
        try:
            while isinstance(
                part := await answer(Service.ADMISSION, endpoint, _soon(call, seconds)),
                ad.SimulateResponse,
            ):
                if part.HasField("pod"):
                    pods.append(part.pod)
                else:
                    notes = tuple(part.node.notes)
        finally:
            call.cancel()
        listed = await stub.ListAdmissions(ad.ListAdmissionsRequest(), timeout=seconds)
    names = {record.pod_uid: f"{record.namespace}/{record.name}" for record in listed.admissions}
    return Simulation(pods=pods, names=names, notes=notes)


async def _soon(
    call: aio.UnaryStreamCall[ad.SimulateRequest, ad.SimulateResponse], seconds: float
) -> object:
    """The next part, which may take so long; how many there are says nothing of that."""
    try:
        async with asyncio.timeout(seconds):
            return await call.read()
    except TimeoutError as error:
        raise Unavailable("no answer in time; give more with --timeout") from error
