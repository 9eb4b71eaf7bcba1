"""What follows an admitted pod: its containers are prepared, started and gone.

Separate from the manager because no decision about a pod is made here: what was decided is
collected for one container, and what finished containers held is given back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from numalign.errors import FieldViolation, InvalidInput, NotPrepared
from numalign.model.hint import NO_HINT
from numalign.model.ids import PodUid
from numalign.provider.hint_messages import hint_to_message
from numalign.store.carried import carried_through
from numalign.topology.agreement import holding_now
from numalign.topology.claim_preparation import ClaimPreparation
from numalign.topology.claim_record import keep_claims
from numalign.topology.hint_store import HintStore
from numalign.topology.pre_start import pre_start
from numalign.topology.provider_handle import ProviderDown, ProviderHandle
from numalign.topology.records import Admitted, Records
from numalign.topology.registry import Introduce, ProviderRegistry
from numalign.topology.turnstile import Turnstile
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb

T = TypeVar("T")


@dataclass(frozen=True)
class _Parts(Generic[T]):
    """What each provider that is there answered, and what went wrong with the others."""

    answers: list[tuple[ProviderHandle, T]]
    failures: list[tuple[ProviderHandle, BaseException]]


class ContainerLife:
    """The containers of admitted pods. Every call takes a turn."""

    def __init__(
        self,
        *,
        records: Records,
        hints: HintStore,
        registry: ProviderRegistry,
        turnstile: Turnstile,
        introduce: Introduce,
        claims: ClaimPreparation,
    ) -> None:
        self._records = records
        self._hints = hints
        self._registry = registry
        self._turnstile = turnstile
        self._introduce = introduce
        self._claims = claims

    async def prepare(self, pod_uid: PodUid, container: str) -> ad.PrepareContainerResponse:
        """What to apply to a container, from every provider."""
        async with self._turnstile.turn():
            admitted = self._records.require(pod_uid)
            _require_container(admitted, container)
            self._claims.check(admitted)
            await self._registry.ready(self._introduce)
        await pre_start(self._registry.handles, admitted.pod, container)
        async with self._turnstile.turn():
            admitted = self._records.require(pod_uid)
            await self._registry.ready(self._introduce)
            parts = await carried_through(self._prepare(admitted, container))
        preparation = _prepared(admitted, container, [part for _, part in parts])
        unready = [handle for handle, part in parts if part.unready]
        await pre_start(unready, admitted.pod, container)
        return preparation

    async def add(self, pod_uid: PodUid, container: str, container_id: str) -> None:
        """A container is about to start: what finished init containers held is freed."""
        async with self._turnstile.turn():
            admitted = self._records.require(pod_uid)
            _require_container(admitted, container)
            await self._registry.ready(self._introduce)
            await carried_through(self._add(admitted, container, container_id))

    async def remove(self, container_id: str) -> None:
        """A container is gone. An unknown id is not an error (TM-51)."""
        async with self._turnstile.turn():
            self._hints.remove_container(container_id)
            await self._records.remove_container(container_id)

    async def _prepare(
        self, admitted: Admitted, container: str
    ) -> list[tuple[ProviderHandle, hp.HintProviderPrepareContainerResponse]]:
        """Each provider's part; what a container was given only now is recorded."""
        request = hp.HintProviderPrepareContainerRequest(pod=admitted.pod, container=container)
        hint = self._hints.get(admitted.pod_uid, container)
        if hint != NO_HINT:
            request.affinity.CopyFrom(hint_to_message(hint))
        parts = await self._each(lambda h: h.stub.PrepareContainer(request, timeout=h.timeout))
        record = admitted.message
        for handle, part in parts.answers:
            held = handle.signed((part.allocation,))
            if part.newly_allocated:
                record = holding_now(handle.name, record, held, (container,))
        await self._record(admitted, record)
        for _, error in parts.failures:
            raise error
        return parts.answers

    async def _add(self, admitted: Admitted, container: str, container_id: str) -> None:
        self._hints.add_container(container_id, admitted.pod_uid, container)
        await self._records.add_container(container_id, admitted.pod_uid, container)
        request = hp.HintProviderAddContainerRequest(
            pod=admitted.pod, container=container, container_id=container_id
        )
        parts = await self._each(lambda h: h.stub.AddContainer(request, timeout=h.timeout))
        record = admitted.message
        names = [allocation.container for allocation in record.allocations]
        for handle, part in parts.answers:
            record = holding_now(handle.name, record, handle.signed(part.allocations), names)
        await self._record(admitted, record)
        # Who did not answer is met again before anything is decided, and the record follows then.
        for handle, error in parts.failures:
            if not (handle.may_be_ignored and isinstance(error, ProviderDown)):
                raise error

    async def _record(self, admitted: Admitted, record: pb.AdmissionRecord) -> None:
        if record != admitted.message:
            await self._records.change(Admitted(admitted.admission_id, admitted.pod, record))

    async def _each(self, call: Callable[[ProviderHandle], Awaitable[T]]) -> _Parts[T]:
        handles = [handle for handle in self._registry.handles if handle.instance_id]
        outcomes = await asyncio.gather(
            *(handle.call(partial(call, handle)) for handle in handles), return_exceptions=True
        )
        parts = _Parts[T]([], [])
        for handle, outcome in zip(handles, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                parts.failures.append((handle, outcome))
            else:
                parts.answers.append((handle, outcome))
        return parts


def _require_container(admitted: Admitted, container: str) -> None:
    if all(a.container != container for a in admitted.message.allocations):
        raise InvalidInput(
            FieldViolation(
                "container_name",
                f'pod "{admitted.pod_uid}" has no container "{container}"',
            )
        )


def _prepared(
    admitted: Admitted, container: str, parts: Iterable[hp.HintProviderPrepareContainerResponse]
) -> ad.PrepareContainerResponse:
    response = ad.PrepareContainerResponse(allocation=pb.ContainerAllocation(container=container))
    for recorded in admitted.message.allocations:
        if recorded.container == container:
            keep_claims(response.allocation, recorded)
            # Before those of device plugins (DRA-27).
            response.edits.cdi_devices.extend(recorded.claim_cdi_devices)
    for part in parts:
        if part.HasField("failure"):
            raise NotPrepared(part.failure.message)
        response.allocation.MergeFrom(part.allocation)
        response.exclusive_cpus |= part.exclusive_cpus
        if part.HasField("cpus"):
            response.cpus = part.cpus
        if part.HasField("mems"):
            response.mems = part.mems
        if part.HasField("edits"):
            response.edits.MergeFrom(part.edits)
    return response
