"""The Simulate call of a service: asks the node for a copy, and a process for the answers.

Separate from what simulates (`simulation`), which imports every service: that is a process of its
own (`simulation_worker`), begun when somebody asks and ended with the answer. So simulations cost
a service no memory, and no admission its turn.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from grpc import aio

from numalign.admission.judging import answered
from numalign.admission.node_file import KnownNode
from numalign.config.settings import Settings
from numalign.errors import FieldViolation, InvalidInput, NumalignError, Unavailable
from numalign.kube.violations import required, unsupported
from numalign.process.simulation_frames import Kind, Order, order_bytes, read_frame, write_frame
from numalign.rpc.enums import refuse_unknown
from numalign.store.carried import carried_through
from numalign.topology.turnstile import Turnstile
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import control_pb2 as ct
from numalign.v1 import control_pb2_grpc as ct_grpc
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import topology_pb2_grpc as tm_grpc
from numalign.v1 import types_pb2 as pb

MOST_PODS = 1000
LONGEST_SECONDS = 120.0
"""How long one simulation may take, from its turn to its last answer."""

MOST_WAITING = 8
"""How many may wait for their turn: one is made at a time."""

_POLICIES = ("none", "best-effort", "restricted", "single-numa-node")
_SCOPES = ("container", "pod")
_PREFIX = "simulation-"
_COMMAND = (sys.executable, "-m", "numalign.process.simulation_worker")


class Simulations:
    """Answers the Simulate calls of one node, over the channel to its Topology Manager."""

    def __init__(self, settings: Settings, topology: aio.Channel) -> None:
        self._place = settings.runtime_directory
        self._log_format = settings.log.format.value
        self._control = ct_grpc.ControlStub(topology)
        self._topology = tm_grpc.TopologyManagerStub(topology)
        self._turns = Turnstile(MOST_WAITING)

    async def answers(self, request: ad.SimulateRequest) -> AsyncGenerator[ad.SimulateResponse]:
        """What is simulated, then the answer to each pod; closed early, nothing of it goes on.

        Raises InvalidInput naming each field that is wrong, QueueFull, Unavailable for a service
        of the node that does not answer, TimeoutError after LONGEST_SECONDS, and NumalignError
        where the process fails.
        """
        _check(request)
        # In time with what a caller does with an answer: one that does not read is cancelled.
        async with self._turns.turn(), _in_time():
            with _directory(self._place) as place:
                order = await self._order(request, place)
                async with _worker(order_bytes(order)) as frames:
                    async for frame in frames:
                        yield ad.SimulateResponse.FromString(frame)

    async def _order(self, request: ad.SimulateRequest, place: Path) -> Order:
        """The node as it stands now, and what is asked."""
        admissions, revision = await self._admissions()
        response = await answered(
            self._control.GetConfiguration(ct.GetConfigurationRequest(), timeout=LONGEST_SECONDS)
        )
        configuration = json.loads(response.document)
        plugins = configuration["numalign"]["devicePlugins"]["mode"] != "static"
        inventory = await self._inventory() if plugins or request.configuration else None
        return Order(
            configuration=configuration,
            under=request.configuration,
            policy=request.policy,
            scope=request.scope,
            inventory=inventory,
            registered=await self._registered(),
            admissions=admissions,
            revision=revision,
            node=request.node.SerializeToString() if request.HasField("node") else b"",
            pods=[pod.SerializeToString(deterministic=True) for pod in request.pods],
            explain=request.explain,
            place=str(place),
            log_format=self._log_format,
        )

    async def _admissions(self) -> tuple[list[tuple[bytes, bytes]], int]:
        stream = self._topology.WatchAdmissions(
            tm.WatchAdmissionsRequest(with_pods=True), timeout=LONGEST_SECONDS
        )
        admissions: list[tuple[bytes, bytes]] = []
        try:
            while isinstance(item := await answered(stream.read()), tm.WatchAdmissionsResponse):
                kind = item.event.WhichOneof("event")
                if kind == "existing" and item.pod:
                    admissions.append((item.event.existing.SerializeToString(), item.pod))
                elif kind == "synced":
                    return admissions, item.event.revision
        finally:
            stream.cancel()
        raise Unavailable("topology manager: the list of admissions ended half-way")

    async def _registered(self) -> list[str]:
        response = await answered(
            self._topology.ListHintProviders(tm.ListHintProvidersRequest(), timeout=LONGEST_SECONDS)
        )
        return [provider.name for provider in response.providers if not provider.built_in]

    async def _inventory(self) -> list[dict[str, Any]]:
        response = await answered(
            self._topology.ListDevices(tm.ListDevicesRequest(), timeout=LONGEST_SECONDS)
        )
        return [
            {
                "resource": listed.resource,
                "devices": [
                    {
                        "id": device.id,
                        "healthy": device.healthy,
                        **({"numa_nodes": list(device.numa_nodes)} if device.has_topology else {}),
                    }
                    for device in listed.devices
                ],
            }
            for listed in response.resources
        ]


def _check(request: ad.SimulateRequest) -> None:
    """Raises InvalidInput. Pods are judged one by one, as Admit judges them."""
    wrong = []
    if not request.pods:
        wrong.append(required("pods"))
    if (count := len(request.pods)) > MOST_PODS:
        wrong.append(FieldViolation("pods", f"Too many: {count}: must have at most {MOST_PODS}"))
    if request.policy and request.policy not in _POLICIES:
        wrong.append(unsupported("policy", request.policy, _POLICIES))
    if request.scope and request.scope not in _SCOPES:
        wrong.append(unsupported("scope", request.scope, _SCOPES))
    if request.HasField("node") and not request.node.metadata.name:
        wrong.append(required("node.metadata.name"))
    if wrong:
        raise InvalidInput(*wrong)
    refuse_unknown("explain", request.explain, pb.ExplainLevel)
    if request.HasField("node"):
        KnownNode.of(request.node)


@contextmanager
def _directory(parent: Path) -> Iterator[Path]:
    """A directory for the files of one simulation.

    What is there already a killed service has left, since one simulation is made at a time.
    """
    parent.mkdir(parents=True, exist_ok=True)
    for left in parent.glob(f"{_PREFIX}*"):
        shutil.rmtree(left)
    place = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
    try:
        yield Path(place)
    finally:
        shutil.rmtree(place)


@asynccontextmanager
async def _worker(order: bytes) -> AsyncIterator[AsyncIterator[bytes]]:
    """Begin a process on the order; its answers. The process is over in the end."""
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            # Not by the loop: uvloop forks, and what gRPC does in a fork can end it with a signal
            # before it has become the program. This one does not fork where it need not.
            process = subprocess.Popen(  # noqa: ASYNC220, S603 - a millisecond; our own program
                _COMMAND, stdin=theirs.fileno(), stdout=subprocess.DEVNULL
            )
        except BaseException:
            ours.close()
            raise
    reader, writer = await asyncio.open_connection(sock=ours)
    try:
        # Where it has ended, why is told where an answer is waited for.
        with suppress(ConnectionError):
            await write_frame(writer, order)
        yield _answers(reader, process)
    finally:
        writer.close()
        process.kill()
        await carried_through(asyncio.to_thread(process.wait))


async def _answers(
    reader: asyncio.StreamReader, process: subprocess.Popen[bytes]
) -> AsyncIterator[bytes]:
    while True:
        frame = await read_frame(reader)
        kind, content = frame[:1], frame[1:]
        if kind == Kind.ANSWER.value:
            yield content
        elif kind == Kind.END.value:
            return
        elif kind == Kind.REFUSED.value:
            lines = content.decode().splitlines()
            raise InvalidInput(*(FieldViolation("configuration", line) for line in lines))
        elif kind == Kind.UNAVAILABLE.value:
            raise Unavailable(content.decode())
        else:
            code = await asyncio.to_thread(process.wait)
            raise NumalignError(
                f"the process that simulates ended early, with status {code}; "
                "the log of this service may say why"
            )


@asynccontextmanager
async def _in_time() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(LONGEST_SECONDS) as limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise TimeoutError(f"the simulation took longer than {LONGEST_SECONDS:g} s") from error
