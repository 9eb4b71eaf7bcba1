"""The DynamicResources service: translate, call, translate back."""

from __future__ import annotations

from collections.abc import AsyncIterator

from numalign.dra import texts
from numalign.dra.claim_book import ClaimBook
from numalign.dra.claim_manager import ClaimManager, PodToPrepare
from numalign.dra.drivers import Drivers
from numalign.dra.health_follower import HealthFollower
from numalign.dra.messages import (
    container_message,
    driver_message,
    fetched_claims,
    kept_message,
    pod_claims,
    recorded_claims,
    unwell_message,
)
from numalign.dra.values import ClaimProblem
from numalign.errors import FieldViolation, InvalidInput, NotUnprepared
from numalign.model.ids import PodUid
from numalign.rpc.context import Context
from numalign.telemetry.logs import log_fields
from numalign.v1 import dynamic_resources_pb2 as dr
from numalign.v1 import dynamic_resources_pb2_grpc as dr_grpc


class DynamicResourcesServicer(dr_grpc.DynamicResourcesServicer):
    """Serves one node's claims.

    `retry_after` is in seconds; `extended_resources` is the gate DRAExtendedResource.
    """

    def __init__(
        self,
        manager: ClaimManager,
        book: ClaimBook,
        drivers: Drivers,
        health: HealthFollower,
        retry_after: float,
        *,
        extended_resources: bool,
    ) -> None:
        self._manager = manager
        self._book = book
        self._drivers = drivers
        self._health = health
        self._retry_after = retry_after
        self._extended_resources = extended_resources

    async def PreparePod(
        self, request: dr.DynamicResourcesPreparePodRequest, context: Context
    ) -> dr.DynamicResourcesPreparePodResponse:
        """Has every claim of a pod prepared that is not prepared yet."""
        pod = pod_claims(request.pod, extended_resources=self._extended_resources)
        asked = PodToPrepare(
            pod=pod,
            fetched=fetched_claims(request.claims),
            revision=request.revision,
            recorded=recorded_claims(request.recorded),
        )
        with log_fields(pod=f"{pod.namespace}/{pod.name}", pod_uid=pod.uid):
            try:
                containers = await self._manager.prepare(asked)
            except ClaimProblem as problem:
                return self._not_yet(problem)
        return dr.DynamicResourcesPreparePodResponse(
            containers=[container_message(container) for container in containers]
        )

    async def UnpreparePod(
        self, request: dr.UnpreparePodRequest, context: Context
    ) -> dr.UnpreparePodResponse:
        """The pod has ended: claims that no other pod uses are unprepared."""
        if not request.pod_uid:
            raise InvalidInput(FieldViolation("pod_uid", "Required value"))
        with log_fields(pod_uid=request.pod_uid):
            try:
                await self._manager.unprepare(
                    PodUid(request.pod_uid), recorded_claims(request.recorded)
                )
            except ClaimProblem as problem:
                raise NotUnprepared(texts.not_unprepared(str(problem))) from problem
        return dr.UnpreparePodResponse()

    async def ReconcilePods(
        self, request: dr.ReconcilePodsRequest, context: Context
    ) -> dr.ReconcilePodsResponse:
        """Says which pods there are: claims of others are unprepared."""
        problems = await self._manager.reconcile(
            frozenset(PodUid(uid) for uid in request.active_pod_uids),
            request.as_of_revision,
            recorded_claims(request.recorded),
        )
        return dr.ReconcilePodsResponse(problems=problems)

    async def ListClaims(
        self, request: dr.ListClaimsRequest, context: Context
    ) -> dr.ListClaimsResponse:
        """Lists the claims that are kept and the drivers that are registered."""
        return dr.ListClaimsResponse(
            claims=[kept_message(info) for _, info in sorted(self._book.claims.items())],
            drivers=[driver_message(plugin) for plugin in self._drivers.all()],
        )

    async def WatchClaimHealth(
        self, request: dr.WatchClaimHealthRequest, context: Context
    ) -> AsyncIterator[dr.WatchClaimHealthResponse]:
        """Streams the devices of claims that are not healthy."""
        async for unwell in self._health.watch():
            yield dr.WatchClaimHealthResponse(devices=[unwell_message(each) for each in unwell])

    def _not_yet(self, problem: ClaimProblem) -> dr.DynamicResourcesPreparePodResponse:
        response = dr.DynamicResourcesPreparePodResponse()
        response.not_yet.reason = texts.REASON
        response.not_yet.message = texts.not_prepared(str(problem))
        response.not_yet.retry_after.FromMilliseconds(round(self._retry_after * 1000))
        return response
