"""The claims of admitted pods, over a record and a DRA service that is an object."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from grpc import StatusCode
from grpc.aio import AioRpcError, Metadata
from tests.unit.topology.test_records import records_in

from numalign.errors import InvalidInput, NotFound, NotPrepared, NotUnprepared, Unavailable
from numalign.kube.pod_json import pod_from_json
from numalign.model.ids import AdmissionId, PodUid
from numalign.topology import claim_preparation
from numalign.topology.claim_preparation import RECONCILE_SECONDS, ClaimPreparation
from numalign.topology.records import Admitted, Records
from numalign.topology.turnstile import Turnstile
from numalign.v1 import claims_pb2 as cl
from numalign.v1 import dynamic_resources_pb2 as dr
from numalign.v1 import types_pb2 as pb

A = PodUid("a")
NO_CLAIMS: tuple[cl.FetchedClaim, ...] = ()


def pod(uid: str = "a", *, claims: bool = True) -> bytes:
    spec: dict[str, Any] = {"containers": [{"name": "c"}, {"name": "plain"}]}
    if claims:
        spec["resourceClaims"] = [{"name": "k", "resourceClaimName": "c1"}]
    metadata = {"name": uid, "namespace": "ns", "uid": uid}
    return pod_from_json({"metadata": metadata, "spec": spec}).SerializeToString()


def claim() -> cl.ClaimAllocation:
    device = cl.ClaimedDevice(driver="d", pool="p", device="x", cdi_devices=["d/x=1"])
    return cl.ClaimAllocation(
        namespace="ns", name="c1", uid="u1", devices=[device], references=["k"]
    )


def failed(code: StatusCode, details: str) -> AioRpcError:
    return AioRpcError(code, Metadata(), Metadata(), details)


class Service:
    """The DRA service: what it is asked, and what it says."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.fails: AioRpcError | None = None
        self.meanwhile: Callable[[], Awaitable[object]] | None = None
        self.containers = [
            dr.ContainerClaims(container="c", claims=[claim()], cdi_devices=["d/x=1"])
        ]

    async def PreparePod(self, request: Any) -> dr.DynamicResourcesPreparePodResponse:  # noqa: N802
        await self._hear(request)
        return dr.DynamicResourcesPreparePodResponse(containers=self.containers)

    async def UnpreparePod(self, request: Any) -> dr.UnpreparePodResponse:  # noqa: N802
        await self._hear(request)
        return dr.UnpreparePodResponse()

    async def ReconcilePods(  # noqa: N802
        self,
        request: Any,
        timeout: float,  # noqa: ASYNC109 - as a stub
    ) -> dr.ReconcilePodsResponse:
        assert timeout == RECONCILE_SECONDS
        await self._hear(request)
        return dr.ReconcilePodsResponse(problems=["b: busy"])

    async def _hear(self, request: Any) -> None:
        self.asked.append(request)
        if self.fails is not None:
            raise self.fails
        if self.meanwhile is not None:
            await self.meanwhile()


@asynccontextmanager
async def world(
    directory: Path, *pods: bytes
) -> AsyncIterator[tuple[ClaimPreparation, Service, Records]]:
    async with records_in(directory) as records:
        for number, data in enumerate(pods or (pod(),)):
            uid = PodUid("abc"[number])
            names = ("c", "plain")
            message = pb.AdmissionRecord(
                pod_uid=uid,
                namespace="ns",
                name=uid,
                allocations=[pb.ContainerAllocation(container=n, cpus="1") for n in names],
            )
            await records.admit(Admitted(AdmissionId(f"i{number}"), data, message))
        service = Service()
        yield ClaimPreparation(records, Turnstile(8), cast("Any", service)), service, records


async def test_what_containers_get_is_recorded_beside_what_they_hold(tmp_path: Path) -> None:
    async with world(tmp_path) as (claims, service, records):
        with pytest.raises(NotPrepared, match='of pod "ns/a" are not prepared'):
            claims.check(records.require(A))
        answer = await claims.prepare(pod(), NO_CLAIMS)
        revision = records.revision
        await claims.prepare(pod(), NO_CLAIMS)
        claims.check(records.require(A))

        assert records.revision == answer.revision == revision
    with_claim, plain = answer.allocations
    assert answer.verdict == pb.VERDICT_ADMITTED
    assert (with_claim.cpus, list(with_claim.claims)) == ("1", [claim()])
    assert list(with_claim.claim_cdi_devices) == ["d/x=1"]
    assert (plain.cpus, list(plain.claims)) == ("1", [])
    assert [list(request.recorded) for request in service.asked] == [
        [],
        [dr.RecordedClaim(claim=claim(), pod_uids=["a"])],
    ]


async def test_not_yet_is_handed_on_and_recorded_nowhere(tmp_path: Path) -> None:
    async with world(tmp_path) as (claims, service, records):
        not_yet = dr.NotPreparedYet(reason="R", message="no driver")
        not_yet.retry_after.FromSeconds(2)

        async def answer(request: Any) -> dr.DynamicResourcesPreparePodResponse:
            return dr.DynamicResourcesPreparePodResponse(not_yet=not_yet)

        service.PreparePod = answer  # type: ignore[method-assign]
        told = await claims.prepare(pod(), NO_CLAIMS)

        assert not records.require(A).message.claims_prepared
    assert told.verdict == pb.VERDICT_DEFERRED
    assert (told.reason, told.message, told.retry_after.seconds) == ("R", "no driver", 2)


async def test_a_pod_that_is_released_meanwhile_leaves_nothing_behind(tmp_path: Path) -> None:
    async with world(tmp_path) as (claims, service, records):
        service.meanwhile = lambda: records.release((A,))
        with pytest.raises(NotFound):
            await claims.prepare(pod(), NO_CLAIMS)

    assert [type(request).__name__ for request in service.asked] == [
        "DynamicResourcesPreparePodRequest",
        "UnpreparePodRequest",
    ]


async def test_only_pods_with_claims_need_the_service_to_end(tmp_path: Path) -> None:
    async with world(tmp_path, pod(), pod("b", claims=False)) as (claims, service, _):
        await claims.unprepare(PodUid("b"))
        nobody = list(service.asked)
        await claims.unprepare(A)
        await claims.unprepare(PodUid("unknown"))

    assert nobody == []
    assert [request.pod_uid for request in service.asked] == ["a", "unknown"]


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        pytest.param(
            failed(StatusCode.UNAVAILABLE, "unprepare dynamic resources: d: busy"),
            NotUnprepared,
            "unprepare dynamic resources: d: busy",
            id="the driver",
        ),
        pytest.param(
            failed(StatusCode.UNAVAILABLE, "refused"),
            Unavailable,
            "dynamic resources: UNAVAILABLE: refused",
            id="the service",
        ),
        pytest.param(
            failed(StatusCode.INVALID_ARGUMENT, "claims: wrong"), InvalidInput, "wrong", id="us"
        ),
    ],
)
async def test_who_stands_in_the_way(
    tmp_path: Path, error: AioRpcError, kind: type[Exception], text: str
) -> None:
    async with world(tmp_path) as (claims, service, _):
        service.fails = error
        with pytest.raises(kind, match=text):
            await claims.unprepare(A)


async def test_reconciling_tells_every_pod_and_claim_and_what_is_not_given_back(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, pod(), pod("b", claims=False)) as (claims, service, records):
        await claims.prepare(pod(), NO_CLAIMS)
        problems = await claims.reconcile()
        request = service.asked[-1]
        service.fails = failed(StatusCode.UNAVAILABLE, "gone")
        down = await claims.reconcile()

        assert request.as_of_revision == records.revision
    assert list(request.active_pod_uids) == ["a", "b"]
    assert list(request.recorded) == [dr.RecordedClaim(claim=claim(), pod_uids=["a"])]
    assert problems == ("b: busy",)
    assert down == ("dynamic resources: UNAVAILABLE: gone",)


async def test_without_the_service_claims_stand_in_nobodys_way(tmp_path: Path) -> None:
    async with records_in(tmp_path) as records:
        claims = ClaimPreparation(records, Turnstile(8), None)
        claims.check(Admitted(AdmissionId("i"), pod(), pb.AdmissionRecord(pod_uid="a")))
        await claims.unprepare(A)

        assert await claims.reconcile() == ()
        with pytest.raises(NotPrepared, match="resource claims are not served here"):
            await claims.prepare(pod(), NO_CLAIMS)


async def test_health_is_heard_again_whatever_ended_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that is down, an answer that nobody expected, and then one that is told."""
    monkeypatch.setattr(claim_preparation, "RETRY_SECONDS", 0)
    endings = [failed(StatusCode.UNAVAILABLE, "gone"), ValueError("odd")]

    class Telling(Service):
        async def WatchClaimHealth(  # noqa: N802
            self, _: dr.WatchClaimHealthRequest
        ) -> AsyncIterator[dr.WatchClaimHealthResponse]:
            if endings:
                raise endings.pop(0)
            device = dr.ClaimedDeviceHealth(namespace="ns", claim="c1", health="Unhealthy")
            yield dr.WatchClaimHealthResponse(devices=[device])
            told.set()
            await asyncio.Event().wait()

    told = asyncio.Event()
    async with records_in(tmp_path) as records:
        stub = cast("Any", Telling())
        following = asyncio.ensure_future(ClaimPreparation(records, Turnstile(1), stub).follow())
        async with asyncio.timeout(60):
            await told.wait()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)

    assert endings == []
