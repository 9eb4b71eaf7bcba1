"""The answers to a stream of pods, in order: each goes out when its decision is recorded.

Separate from the servicer, which answers single calls. The Topology Manager tells at once how it
decides on a pod, and later, for several pods together, that they are recorded
(`topology/pod_stream.py`). Until then an answer is held back here, while the next pod is judged
as if it were recorded. If the recording fails, so do all answers that are held back: whatever was
said of these pods stands on what is not there.

While pods are held back no other call is walked through the chain of admit handlers; so the
Topology Manager is told that no more follow as soon as somebody waits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

from grpc import StatusCode, aio

from numalign.admission.chain.built_in import FRESH_NODE_NEEDED
from numalign.admission.judging import Judging, TopologyStream, named
from numalign.admission.received import ReceivedAdmit
from numalign.admission.sitting import Sitting
from numalign.errors import NumalignError, Unavailable
from numalign.rpc.channel import MESSAGE_BYTES
from numalign.rpc.status import status_of
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import topology_pb2 as tm

READ_AHEAD = 8
"""How many pods are read before they are judged; a faster caller has to wait."""


class NoDecision(Exception):
    """The Topology Manager has not decided on a pod; `error` says why."""

    def __init__(self, error: ad.StreamError) -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(slots=True)
class _Answer:
    """The answer to one pod. `stands_on_others`: it is worth nothing if those before are lost."""

    received: ReceivedAdmit
    begun: float
    decision: ad.AdmitResponse | None = None
    error: ad.StreamError | None = None
    stands_on_others: bool = False

    def why(self, error: ad.StreamError) -> NoDecision:
        """There is no decision, for what was lost before or else for this reason."""
        return NoDecision(self.error or error)


class PodStream:
    """Answers the pods of one stream; to be used once. `left`: seconds to the deadline, if any."""

    def __init__(self, judging: Judging, left: Callable[[], float | None]) -> None:
        self._judging = judging
        self._left = left
        self._read: asyncio.Queue[ReceivedAdmit | None] = asyncio.Queue(READ_AHEAD)
        self._topology: TopologyStream | None = None
        self._held_back: list[_Answer] = []
        self._unsettled: list[ad.AdmitResponse] = []
        self._chain = AsyncExitStack()
        self._sitting: Sitting | None = None
        self._order_is_broken = False

    async def answers(
        self, requests: AsyncIterator[ad.AdmitPodsRequest | ReceivedAdmit]
    ) -> AsyncGenerator[ad.AdmitPodsResponse, None]:
        """The answers. Closed before its end, what is not recorded is undone."""
        reading = asyncio.ensure_future(self._read_all(requests))
        try:
            while (received := await self._read.get()) is not None:
                if self._judging.goes_alone(received.request):
                    for answer in await self._settled():
                        yield answer
                await self._judge(received)
                if self._read.empty() or not self._unsettled or self._judging.others_wait:
                    for answer in await self._settled():
                        yield answer
            for answer in await self._settled():
                yield answer
            await self._end()
            await reading
        finally:
            reading.cancel()
            if self._topology is not None:
                self._topology.cancel()
            await self._chain.aclose()
            await asyncio.gather(reading, return_exceptions=True)

    async def _end(self) -> None:
        """Let the Topology Manager end the stream, too; nothing is owed any more."""
        if self._topology is not None:
            await self._topology.done_writing()
            with suppress(aio.AioRpcError):
                await self._topology.read()

    async def _read_all(self, requests: AsyncIterator[ad.AdmitPodsRequest | ReceivedAdmit]) -> None:
        try:
            async for item in requests:
                received = (
                    ReceivedAdmit.from_message(item.admit)
                    if isinstance(item, ad.AdmitPodsRequest)
                    else item
                )
                await self._read.put(received)
        except Exception:
            await self._read.put(None)
            raise
        await self._read.put(None)

    async def _judge(self, received: ReceivedAdmit) -> None:
        """Come to a decision on a pod, which is held back."""
        answer = _Answer(received, time.perf_counter())
        self._held_back.append(answer)
        if self._order_is_broken and received.request.only_in_order:
            answer.error = _out_of_order()
            return
        try:
            self._judging.check(received)
            decision = await self._decision(answer)
        except NoDecision as refused:
            answer.error = refused.error
        except (NumalignError, aio.AioRpcError) as error:
            answer.error = _item(error)
        else:
            # It may be lost already, with those before it.
            answer.decision = decision if answer.error is None else None
            self._order_is_broken |= _asks_for_something(decision)
        self._order_is_broken |= answer.error is not None

    async def _decision(self, answer: _Answer) -> ad.AdmitResponse:
        received, request = answer.received, answer.received.request
        if self._judging.goes_alone(request):
            return await self._judging.decide(received, self._left())
        if self._sitting is None and not self._unsettled:
            self._sitting = await self._judging.sit(self._chain)
        answer.stands_on_others = True

        async def ask(dry_run: bool) -> ad.AdmitResponse:
            return await self._ask(answer, dry_run=dry_run)

        if self._sitting is None:
            return await ask(request.dry_run)
        return await self._sitting.admit(request, received.pod, ask)

    async def _ask(self, answer: _Answer, *, dry_run: bool) -> ad.AdmitResponse:
        """What the Topology Manager decides on a pod; it may not be settled yet."""
        if answer.error is not None:
            raise NoDecision(answer.error)
        # The chain tries a pod first where a handler wants to know what it would get.
        tries = dry_run and not answer.received.request.dry_run
        more = tries or not (self._read.empty() or self._judging.others_wait)
        question = tm.TopologyManagerAdmitPodsRequest(
            admit=self._judging.question(answer.received, dry_run=dry_run), more=more
        )
        if (size := question.ByteSize()) > MESSAGE_BYTES:
            # gRPC would end the stream over it, and the pods before this one were lost.
            raise NoDecision(_too_large(size))
        try:
            await self._send(question)
            while True:
                message = await self._hear()
                if message.HasField("error"):
                    raise answer.why(message.error)
                if message.HasField("decision"):
                    return message.decision
        except (aio.AioRpcError, Unavailable) as error:
            self._break_off(error)
            raise answer.why(_item(error)) from error

    async def _send(self, question: tm.TopologyManagerAdmitPodsRequest) -> None:
        if self._topology is not None and self._topology.done() and not self._unsettled:
            # Another process may be there by now, and nothing is owed by the one that was.
            self._topology = None
        if self._topology is None:
            self._topology = self._judging.open_topology(self._left())
        try:
            await self._topology.write(question)
        except asyncio.InvalidStateError:
            # It is over; why is said where an answer is waited for.
            return
        except aio.AioRpcError as error:
            # gRPC has no better word for a stream that breaks under a write than INTERNAL.
            text = f"topology manager: the stream of pods broke off ({error.details()})"
            raise Unavailable(text) from error

    async def _hear(self) -> tm.TopologyManagerAdmitPodsResponse:
        """The next message, with what it says of recording noted. Raises what ended the stream."""
        message = aio.EOF if self._topology is None else await self._topology.read()
        if not isinstance(message, tm.TopologyManagerAdmitPodsResponse):
            raise Unavailable("topology manager: it ended the stream of pods")
        if message.HasField("decision"):
            self._unsettled.append(message.decision)
        elif message.HasField("error"):
            self._unsettled.append(ad.AdmitResponse())
        if message.settled.HasField("error"):
            self._lose(message.settled.error)
        elif message.HasField("settled"):
            for decision, revision in zip(self._unsettled, message.settled.revisions, strict=True):
                decision.revision = revision
            self._settle_all(max(message.settled.revisions, default=0))
        return message

    async def _settled(self) -> list[ad.AdmitPodsResponse]:
        """Wait until everything decided is recorded or lost; what is to be answered then."""
        try:
            while self._unsettled:
                await self._hear()
        except (aio.AioRpcError, Unavailable) as error:
            self._break_off(error)
        self._sitting = None
        await self._chain.aclose()
        answers, self._held_back = self._held_back, []
        return [self._told(answer) for answer in answers]

    def _told(self, answer: _Answer) -> ad.AdmitPodsResponse:
        request, decision = answer.received.request, answer.decision
        if decision is not None:
            self._judging.told(request, decision, time.perf_counter() - answer.begun)
        uid = request.pod.metadata.uid
        return ad.AdmitPodsResponse(pod_uid=uid, decision=decision, error=answer.error)

    def _break_off(self, error: aio.AioRpcError | Unavailable) -> None:
        """The stream to the Topology Manager has ended; whether it recorded is not known."""
        if self._topology is not None:
            self._topology.cancel()
            self._topology = None
        self._lose(_item(error))

    def _lose(self, error: ad.StreamError) -> None:
        self._order_is_broken = True
        for answer in self._held_back:
            if answer.stands_on_others and answer.error is None:
                answer.decision, answer.error = None, error
        self._settle_all(0)

    def _settle_all(self, revision: int) -> None:
        self._unsettled.clear()
        if self._sitting is not None:
            self._sitting.settled(revision)


def _too_large(size: int) -> ad.StreamError:
    """What is answered about a request that cannot be handed on."""
    text = f"the request is too large to be handed on ({size} bytes vs. {MESSAGE_BYTES})"
    return ad.StreamError(code=StatusCode.RESOURCE_EXHAUSTED.value[0], message=text)


def _asks_for_something(decision: ad.AdmitResponse) -> bool:
    """Whether the caller has something to do before it goes on."""
    return bool(decision.victims) or decision.reason == FRESH_NODE_NEEDED


def _out_of_order() -> ad.StreamError:
    """What is answered about a pod behind one that its caller has to see to first."""
    text = "not judged: a pod before it in the stream has to be seen to first"
    return ad.StreamError(code=StatusCode.ABORTED.value[0], message=text)


def _item(error: Exception) -> ad.StreamError:
    """An error as an item of the stream."""
    code, message = status_of(named(error) if isinstance(error, aio.AioRpcError) else error)
    return ad.StreamError(code=code.value[0], message=message)
