"""One pod, from a caller's request to the decision that goes out.

Separate from the servicer, because a single call and a stream of pods go this way: what is
checked before anybody is asked, what the Topology Manager is asked, and what is noted of the
answer.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TypeVar

from grpc import StatusCode, aio

from numalign.admission.admit_chain import AdmitChain
from numalign.admission.journal.entry import is_decision, record_of
from numalign.admission.journal.journal import Journal
from numalign.admission.observer import AnswerObserver
from numalign.admission.received import ReceivedAdmit
from numalign.admission.sitting import Sitting
from numalign.errors import FieldViolation, InvalidInput, NodeUnknown, Unavailable
from numalign.kube.pod_decode import MAX_POD_BYTES
from numalign.kube.violations import too_long
from numalign.rpc.enums import refuse_unknown
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import topology_pb2_grpc as tm_grpc
from numalign.v1 import types_pb2 as pb

T = TypeVar("T")

TopologyStream = aio.StreamStreamCall[
    tm.TopologyManagerAdmitPodsRequest, tm.TopologyManagerAdmitPodsResponse
]

_ADDITIONS = (pb.OPERATION_UNSPECIFIED, pb.OPERATION_ADD)


class Judging:
    """Judges pods over one Topology Manager. `noted` hears of what changed something."""

    def __init__(
        self,
        topology: tm_grpc.TopologyManagerAsyncStub,
        default_owner: str,
        observer: AnswerObserver,
        noted: Callable[[int], None],
        chain: AdmitChain,
        journal: Journal | None,
    ) -> None:
        self.noted = noted
        self._topology = topology
        self._default_owner = default_owner
        self._observer = observer
        self._chain = chain
        self._journal = journal

    async def admit(self, received: ReceivedAdmit, seconds: float | None) -> ad.AdmitResponse:
        """Decide on one pod within so many seconds, and tell of it."""
        self.check(received)
        self._observer.asked(received.request)
        started = time.perf_counter()
        decision = await self.decide(received, seconds)
        self.told(received.request, decision, time.perf_counter() - started)
        return decision

    async def decide(self, received: ReceivedAdmit, seconds: float | None) -> ad.AdmitResponse:
        """Decide on a pod that was checked."""
        request = received.request

        async def ask(dry_run: bool) -> ad.AdmitResponse:
            question = self.question(received, dry_run=dry_run)
            response = await answered(self._topology.Admit(question, timeout=seconds))
            return response.decision

        if request.operation == pb.OPERATION_RESIZE:
            return await self._chain.resize(request, received.pod, ask)
        if self._chain.is_active and request.operation in _ADDITIONS:
            return await self._chain.admit(request, received.pod, ask)
        return await ask(request.dry_run)

    def check(self, received: ReceivedAdmit) -> None:
        """Raise what is wrong with a request before anybody is asked."""
        if not received.readable:
            raise InvalidInput(
                FieldViolation("pod", "Invalid value: the bytes are not those of an AdmitRequest")
            )
        if not received.pod:
            raise InvalidInput(FieldViolation("pod", "Required value"))
        if len(received.pod) > MAX_POD_BYTES:
            raise InvalidInput(too_long("pod", MAX_POD_BYTES))
        request = received.request
        refuse_unknown("operation", request.operation, pb.Operation)
        refuse_unknown("explain", request.explain, pb.ExplainLevel)
        if request.needs_node and not self._chain.node.is_known:
            raise NodeUnknown("node: no Node object is known; set it by SetNode and ask again")

    def question(self, received: ReceivedAdmit, *, dry_run: bool) -> tm.TopologyManagerAdmitRequest:
        """What the Topology Manager is asked about a pod."""
        request = received.request
        return tm.TopologyManagerAdmitRequest(
            pod=received.pod,
            operation=request.operation,
            owner=request.owner or self._default_owner,
            dry_run=dry_run,
            explain=request.explain,
            remember=self._journal is not None and not request.dry_run,
            claims=request.claims,
        )

    def told(self, request: ad.AdmitRequest, decision: ad.AdmitResponse, seconds: float) -> None:
        """A decision that took so long goes out."""
        self._observer.answered(request, decision)
        self.noted(decision.revision)
        if self._journal is not None and is_decision(request, decision):
            owner = request.owner or self._default_owner
            self._journal.note(record_of(request, decision, owner, seconds, time.time_ns()))

    def goes_alone(self, request: ad.AdmitRequest) -> bool:
        """Whether a pod of a stream is judged by a call of its own: only additions share one."""
        return request.operation not in _ADDITIONS

    def open_topology(self, seconds: float | None) -> TopologyStream:
        """A stream of questions to the Topology Manager, for so many seconds."""
        stream: TopologyStream = self._topology.AdmitPods(timeout=seconds)
        return stream

    async def sit(self, stack: AsyncExitStack) -> Sitting | None:
        """The chain of admit handlers until the stack ends; None where nobody is in it."""
        if not self._chain.is_active:
            return None
        return await stack.enter_async_context(self._chain.sitting())

    @property
    def others_wait(self) -> bool:
        """Whether anybody waits for the chain."""
        return self._chain.others_wait


async def answered(call: Awaitable[T]) -> T:
    """Await a call to the Topology Manager. Raises an error that says who it is about."""
    try:
        return await call
    except aio.AioRpcError as error:
        raise named(error) from error


def named(error: aio.AioRpcError) -> Exception:
    """The same error, or one that says that the Topology Manager cannot be reached."""
    details = error.details() or ""
    if error.code() == StatusCode.UNAVAILABLE and not _is_named(details):
        return Unavailable(f"topology manager: {details}")
    return error


def _is_named(details: str) -> bool:
    """Whether the Topology Manager has said who else cannot be reached."""
    return "hint provider" in details or "dynamic resources" in details
