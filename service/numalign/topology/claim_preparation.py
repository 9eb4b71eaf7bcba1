"""The resource claims of admitted pods: prepared before they start, given back when they ended.

Separate from the life of containers, which takes what was prepared out of the record, and from
the DRA service, which asks the drivers and keeps the claims. No turn is held while drivers are
asked: other pods are decided on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

from grpc import StatusCode, aio

from numalign.errors import InvalidInput, NotFound, NotPrepared, NotUnprepared, Unavailable
from numalign.kube.claims import refers_to_claims
from numalign.kube.pod_decode import decode_pod, parse_pod
from numalign.model.ids import PodUid
from numalign.rpc.deadline import within
from numalign.rpc.status import violations_of
from numalign.telemetry.logs import get_logger
from numalign.topology.claim_health import ClaimHealth
from numalign.topology.claim_record import (
    needs_preparation,
    recorded_claims,
    with_claims,
)
from numalign.topology.records import Admitted, Records
from numalign.topology.turnstile import Turnstile
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import claims_pb2 as cl
from numalign.v1 import dynamic_resources_pb2 as dr
from numalign.v1 import dynamic_resources_pb2_grpc as dr_grpc
from numalign.v1 import types_pb2 as pb

T = TypeVar("T")

RETRY_SECONDS = 1.0
"""How long to wait before a DRA service that is gone is watched again."""

RECONCILE_SECONDS = 10.0
"""How long a reconciliation waits for drivers at most; what they have not done is tried again."""

NOT_ENABLED = "resource claims are not served here (numalign.dra.enabled is false)"
_SERVICE = "dynamic resources"

_log = get_logger("claims")


class ClaimPreparation:
    """The claims of one node's pods; `service` None: there is no DRA service."""

    def __init__(
        self,
        records: Records,
        turnstile: Turnstile,
        service: dr_grpc.DynamicResourcesAsyncStub | None,
    ) -> None:
        self._records = records
        self._turnstile = turnstile
        self._service = service
        self._health = ClaimHealth(records)
        self._asked: set[PodUid] = set()

    async def prepare(
        self, data: bytes, claims: Iterable[cl.FetchedClaim]
    ) -> ad.PreparePodResponse:
        """Have the claims of an admitted pod prepared, and record them.

        Raises NotPrepared where there is no DRA service, NotFound for a pod that is not
        admitted (or not any more), InvalidInput for claims that the caller left out, and
        Unavailable.
        """
        if self._service is None:
            raise NotPrepared(NOT_ENABLED)
        pod_uid = decode_pod(data).uid
        admitted = self._records.require(pod_uid)
        self._asked.add(pod_uid)
        answer = await _answered(
            self._service.PreparePod(
                dr.DynamicResourcesPreparePodRequest(
                    pod=data,
                    claims=claims,
                    revision=admitted.message.revision,
                    recorded=recorded_claims(self._records.all(), admitted),
                )
            )
        )
        if answer.HasField("not_yet"):
            return self._not_yet(answer.not_yet)
        try:
            admitted = await self._record(pod_uid, answer.containers)
        except NotFound:
            # It was released meanwhile; what was prepared for it must not stay.
            await _answered(self._service.UnpreparePod(dr.UnpreparePodRequest(pod_uid=pod_uid)))
            raise
        self._health.tell()
        return ad.PreparePodResponse(
            verdict=pb.VERDICT_ADMITTED,
            allocations=admitted.message.allocations,
            revision=self._records.revision,
        )

    def check(self, admitted: Admitted) -> None:
        """Raise NotPrepared for a pod whose claims have to be prepared first (DRA-26)."""
        if self._service is not None:
            missing = needs_preparation(admitted)
            if missing is not None:
                raise NotPrepared(missing)

    async def unprepare(self, pod_uid: PodUid) -> None:
        """A pod has ended, and nothing of it runs: its claims are given back (DRA-28).

        Raises NotUnprepared where a driver does not take them, and Unavailable.
        """
        admitted = self._records.get(pod_uid)
        if self._service is None or (admitted is not None and not self._uses_claims(admitted)):
            return
        recorded = () if admitted is None else recorded_claims(self._records.all(), admitted)
        await _answered(
            self._service.UnpreparePod(dr.UnpreparePodRequest(pod_uid=pod_uid, recorded=recorded))
        )
        self._asked.discard(pod_uid)

    async def reconcile(self) -> tuple[str, ...]:
        """Have the claims of pods that are not admitted any more given back; what is not yet."""
        if self._service is None:
            return ()
        every = self._records.all()
        request = dr.ReconcilePodsRequest(
            active_pod_uids=[admitted.pod_uid for admitted in every],
            as_of_revision=self._records.revision,
            recorded=recorded_claims(every),
        )
        seconds = 0.5 * (within(2 * RECONCILE_SECONDS) or 0.0)
        try:
            # What was released is to be told, however long drivers take.
            answer = await _answered(self._service.ReconcilePods(request, timeout=seconds))
        except Unavailable as error:
            return (str(error),)
        self._asked &= {admitted.pod_uid for admitted in every}
        return tuple(answer.problems)

    async def follow(self) -> None:
        """Follow the health of claimed devices for as long as the service runs."""
        while self._service is not None:
            try:
                async for told in self._service.WatchClaimHealth(dr.WatchClaimHealthRequest()):
                    self._health.heard(told.devices)
            except aio.AioRpcError:
                # It is down, and what was said last stays until it is back.
                pass
            except Exception:
                # Whatever it was: health has to be heard again.
                _log.exception("the health of claimed devices is not heard")
            await asyncio.sleep(RETRY_SECONDS)

    async def _record(self, pod_uid: PodUid, containers: Iterable[dr.ContainerClaims]) -> Admitted:
        async with self._turnstile.turn():
            admitted = self._records.require(pod_uid)
            changed = with_claims(admitted.message, containers)
            if changed == admitted.message:
                return admitted
            return await self._records.change(
                Admitted(admitted.admission_id, admitted.pod, changed)
            )

    def _uses_claims(self, admitted: Admitted) -> bool:
        return (
            admitted.pod_uid in self._asked
            or admitted.message.claims_prepared
            or refers_to_claims(parse_pod(admitted.pod))
        )

    def _not_yet(self, told: dr.NotPreparedYet) -> ad.PreparePodResponse:
        return ad.PreparePodResponse(
            verdict=pb.VERDICT_DEFERRED,
            reason=told.reason,
            message=told.message,
            retry_after=told.retry_after,
            revision=self._records.revision,
        )


async def _answered(call: Awaitable[T]) -> T:
    """Await a call to the DRA service; its errors become ours."""
    try:
        return await call
    except aio.AioRpcError as error:
        details = error.details() or ""
        if error.code() is StatusCode.INVALID_ARGUMENT:
            raise InvalidInput(*violations_of(error)) from error
        if details.startswith("unprepare dynamic resources"):
            raise NotUnprepared(details) from error
        raise Unavailable(f"{_SERVICE}: {error.code().name}: {details}") from error
