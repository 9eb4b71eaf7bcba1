"""One hint provider as the Topology Manager calls it: its channel, its settings, how it stands.

Separate from the fan-out of one admission, because a handle outlives admissions: it knows
which process answered last, and whether the outcome of the last admission has reached it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from grpc import StatusCode, aio

from numalign.errors import Fault, InvalidInput, Unavailable
from numalign.rpc.call_stream.caller import CallStream
from numalign.rpc.deadline import current_deadline
from numalign.rpc.status import violations_of
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import hint_provider_pb2_grpc as hp_grpc
from numalign.v1 import types_pb2 as pb

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

AFTER_THE_ANSWER_SECONDS = 0.002
"""How long an outcome that nobody waits for stands back behind the answer to the caller."""


class StartedCall(Awaitable[T_co], Protocol[T_co]):
    """A call that is under way."""

    def cancel(self) -> bool:
        """Give the call up."""


class ProviderFault(Fault):
    """A provider cannot judge the pod at all; the text says why."""


class ProviderDown(Unavailable):
    """A provider did not answer, or is not the process that it was."""

    def __init__(self, provider: str, why: str) -> None:
        super().__init__(f"hint provider {provider}: {why}")
        self.provider = provider
        self.why = why


@dataclass(slots=True)
class ProviderHandle:
    """A provider. `instance_id` is the process that has the picture; empty: none has it.

    `refitted` says that it has fitted its books to another configuration since. `call_stream`
    is the stream that its calls can go over, where it takes one. `registered`: it is there because
    it registered, and not by the configuration; `recalled`: it did so with an earlier process of
    the Topology Manager, and has not answered this one.
    """

    name: str
    endpoint: str
    stub: hp_grpc.HintProviderAsyncStub
    timeout: float
    built_in: bool
    failure_policy: pb.FailurePolicy.ValueType = pb.FAILURE_POLICY_FAIL
    call_stream: CallStream | None = None
    resources: tuple[str, ...] = ()
    instance_id: str = ""
    last_error: str = ""
    refitted: bool = False
    pre_starts: bool = False
    takes_groups: bool = False
    registered: bool = False
    recalled: bool = False
    _fitted: int = field(default=0, init=False)
    _outcome: asyncio.Task[None] | None = field(default=None, init=False)
    _later: asyncio.TimerHandle | None = field(default=None, init=False)
    _outcome_to_come: Callable[[], Awaitable[object]] | None = field(default=None, init=False)

    @property
    def may_be_ignored(self) -> bool:
        """Whether an admission goes on without this provider when it does not answer."""
        return self.failure_policy == pb.FAILURE_POLICY_IGNORE

    async def call(self, request: Callable[[], Awaitable[T]]) -> T:
        """Await one call. Raises ProviderDown naming the provider where it fails."""
        try:
            response = await request()
        except aio.AioRpcError as error:
            self._note_failure(error)
            if error.code() == StatusCode.INVALID_ARGUMENT:
                raise InvalidInput(*violations_of(error)) from error
            raise ProviderDown(self.name, self.last_error) from error
        self.last_error = ""
        return response

    async def decide(self, request: Callable[[], Awaitable[T]]) -> T:
        """Await one call of an admission, and see that the same process answers still.

        Raises ProviderDown where it does not: what it held tentatively is gone.
        """
        response = await self.call(request)
        answered_by = getattr(response, "instance_id", "")
        if answered_by != self.instance_id:
            self.instance_id = ""
            raise ProviderDown(self.name, "restarted during the admission")
        return response

    def is_new_to(self, event: hp.WatchResponse) -> bool:
        """Whether the provider has to be told the picture, now that it has said this.

        It has when it is another process, or has fitted its books to another configuration.
        """
        if self.instance_id and event.fitted != self._fitted:
            self.refitted = True
        self._fitted = event.fitted
        return self.refitted or not self.instance_id

    async def introduce(
        self, picture: hp.HintProviderReconcileRequest
    ) -> hp.HintProviderReconcileResponse:
        """Ask who answers now and hand it the picture; after this it can be asked to decide."""
        info = await self.call(lambda: self.stub.GetInfo(hp.GetInfoRequest(), timeout=self.timeout))
        self.resources = tuple(info.resources)
        self.pre_starts = info.pre_starts
        if self.call_stream is not None:
            self.call_stream.want(wanted=info.call_stream)
        self.takes_groups = info.takes_groups
        taken = await self.call(lambda: self.stub.Reconcile(picture, timeout=self.timeout))
        if taken.instance_id != info.instance_id:
            raise ProviderDown(self.name, "restarted while it was told the picture")
        self.instance_id = info.instance_id
        self.recalled = False
        return taken

    def signed(
        self, allocations: Iterable[pb.ContainerAllocation]
    ) -> tuple[pb.ContainerAllocation, ...]:
        """What the provider says that containers hold, third parties' devices under its name."""
        told = tuple(allocations)
        if not self.built_in:
            for allocation in told:
                for device in allocation.devices:
                    device.provider = self.name
        return told

    def deliver(self, outcome: Callable[[], Awaitable[object]]) -> None:
        """Send an outcome without waiting for it; `delivered` waits."""
        self._outcome = asyncio.ensure_future(self._deliver(outcome))

    def deliver_later(self, outcome: Callable[[], Awaitable[object]]) -> None:
        """Send an outcome behind the answer that it follows, or when somebody waits for it."""
        self._outcome_to_come = outcome
        loop = asyncio.get_running_loop()
        self._later = loop.call_later(AFTER_THE_ANSWER_SECONDS, self.deliver_now)

    def deliver_now(self) -> None:
        """Send an outcome that stands back, if there is one."""
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if self._outcome_to_come is not None:
            outcome, self._outcome_to_come = self._outcome_to_come, None
            self.deliver(outcome)

    async def delivered(self) -> None:
        """Wait until the last outcome has reached the provider, or cannot."""
        self.deliver_now()
        if self._outcome is not None:
            await asyncio.shield(self._outcome)
            self._outcome = None

    def status(self) -> tuple[str, str]:
        """The process that answers and the last error."""
        return self.instance_id, self.last_error

    async def _deliver(self, outcome: Callable[[], Awaitable[object]]) -> None:
        # The caller's deadline is for the answer; the outcome is true however late it is.
        current_deadline.set(None)
        try:
            await outcome()
        except aio.AioRpcError as error:
            # The next admission hands the provider the whole picture, which says the same.
            self._note_failure(error)

    def _note_failure(self, error: aio.AioRpcError) -> None:
        self.last_error = f"{error.code().name}: {error.details()}"
        if error.code() != StatusCode.INVALID_ARGUMENT:
            self.instance_id = ""


def bound(
    method: Callable[..., Awaitable[object]], request: object, timeout: float
) -> Callable[[], Awaitable[object]]:
    """A call of `method`, for `deliver`."""
    return lambda: method(request, timeout=timeout)
