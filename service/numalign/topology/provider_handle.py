"""One hint provider as the Topology Manager calls it: its channel, its settings, how it stands.

Separate from the fan-out of one admission, because a handle outlives admissions: it knows
which process answered last, and whether the outcome of the last admission has reached it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from grpc import StatusCode, aio

from numalign.errors import Fault, InvalidInput, Unavailable
from numalign.rpc.status import violations_of
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import hint_provider_pb2_grpc as hp_grpc
from numalign.v1 import types_pb2 as pb

T = TypeVar("T")


class ProviderFault(Fault):
    """A provider cannot judge the pod at all; the text says why."""


class ProviderDown(Unavailable):
    """A provider did not answer, or is not the process that it was."""

    def __init__(self, provider: str, why: str) -> None:
        super().__init__(f"hint provider {provider}: {why}")
        self.provider = provider


@dataclass(slots=True)
class ProviderHandle:
    """A provider. `instance_id` is the process that has the picture; empty: none has it."""

    name: str
    endpoint: str
    stub: hp_grpc.HintProviderAsyncStub
    timeout: float
    built_in: bool
    failure_policy: pb.FailurePolicy.ValueType = pb.FAILURE_POLICY_FAIL
    resources: tuple[str, ...] = ()
    instance_id: str = ""
    last_error: str = ""
    _outcome: asyncio.Task[None] | None = field(default=None, init=False)

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

    async def introduce(self, picture: hp.HintProviderReconcileRequest) -> None:
        """Ask who answers now and hand it the picture; after this it can be asked to decide."""
        info = await self.call(lambda: self.stub.GetInfo(hp.GetInfoRequest(), timeout=self.timeout))
        self.resources = tuple(info.resources)
        await self.call(lambda: self.stub.Reconcile(picture, timeout=self.timeout))
        self.instance_id = info.instance_id

    def deliver(self, outcome: Callable[[], Awaitable[object]]) -> None:
        """Send an outcome without waiting for it; `delivered` waits."""
        self._outcome = asyncio.ensure_future(self._deliver(outcome))

    async def delivered(self) -> None:
        """Wait until the last outcome has reached the provider, or cannot."""
        if self._outcome is not None:
            await asyncio.shield(self._outcome)
            self._outcome = None

    def status(self) -> tuple[str, str]:
        """The process that answers and the last error."""
        return self.instance_id, self.last_error

    async def _deliver(self, outcome: Callable[[], Awaitable[object]]) -> None:
        try:
            await outcome()
        except aio.AioRpcError as error:
            # The next admission hands the provider the whole picture, which says the same.
            self._note_failure(error)

    def _note_failure(self, error: aio.AioRpcError) -> None:
        self.last_error = f"{error.code().name}: {error.details()}"
        if error.code() != StatusCode.INVALID_ARGUMENT:
            self.instance_id = ""
