"""Reading the claims of pods and having them prepared, before anything of them runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import pytest
from grpc import StatusCode
from tests.unit.agent.made import container, pod

from numalign.kube.core.v1 import core_pb2
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import claims_pb2 as cl
from numalign.v1 import types_pb2 as pb
from numalign_agent.api.errors import Refused, Unreachable
from numalign_agent.claims.api_reader import ApiClaimReader
from numalign_agent.claims.port import NoClaims
from numalign_agent.claims.preparing import ClaimPreparing
from numalign_agent.pod import AgentPod
from numalign_agent.status.cache import StatusCache
from numalign_agent.workers.port import OperationFailed
from numalign_client.errors import PreconditionFailed


class Calls:
    """Admission: hears which claims were read, and says what it is told to."""

    def __init__(self) -> None:
        self.heard: list[list[cl.FetchedClaim]] = []
        self.answer = ad.PreparePodResponse(verdict=pb.VERDICT_ADMITTED)
        self.fails: Exception | None = None

    async def prepare_pod(
        self, pod: core_pb2.Pod, claims: Iterable[cl.FetchedClaim]
    ) -> ad.PreparePodResponse:
        assert pod.metadata.uid == "uid-p"
        self.heard.append(list(claims))
        if self.fails is not None:
            raise self.fails
        return self.answer


class Server:
    """An API server with one claim."""

    async def get(self, path: str) -> dict[str, Any]:
        if path.endswith("/c1"):
            assert path == "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c1"
            return {"metadata": {"namespace": "ns", "name": "c1", "uid": "u1"}}
        if path.endswith("/odd"):
            return {"kind": "Status"}
        if path.endswith("/slow"):
            raise Unreachable("GET: no answer within 30 s")
        raise Refused(404, "NotFound", f'resourceclaims "{path.rpartition("/")[2]}" not found')


def claiming(*claims: str, **status: object) -> AgentPod:
    entries = [{"name": f"k{i}", "resourceClaimName": name} for i, name in enumerate(claims)]
    made = pod("p", container("a")).replacing("metadata", namespace="ns")
    return made.replacing("spec", resourceClaims=entries).replacing("status", **status)


def preparing(calls: Calls, reader: Any = None) -> tuple[ClaimPreparing, list[str]]:
    cache, events = StatusCache([]), []
    cache.event = lambda *about: events.append(f"{about[2]}: {about[3]}")  # type: ignore[method-assign]
    reader = ApiClaimReader(cast("Any", Server())) if reader is None else reader
    return ClaimPreparing(cast("Any", calls), reader, cache), events


async def test_a_pod_without_claims_asks_nobody() -> None:
    calls = Calls()
    await preparing(calls)[0].prepare(claiming())

    assert calls.heard == []


async def test_each_claim_is_read_once_and_errors_travel_as_the_server_says_them() -> None:
    calls = Calls()
    await preparing(calls)[0].prepare(claiming("c1", "gone", "c1", "odd", "slow"))

    ((claim, gone, odd, slow),) = calls.heard
    assert (claim.name, claim.claim.uid) == ("c1", "u1")
    assert gone.error == 'resourceclaims "gone" not found'
    assert odd.error.startswith("the answer is no ResourceClaim")
    assert slow.error == "GET: no answer within 30 s"


async def test_claims_of_templates_are_found_by_the_status() -> None:
    calls = Calls()
    asked = claiming().replacing(
        "spec", resourceClaims=[{"name": "t", "resourceClaimTemplateName": "x"}]
    )
    made = asked.replacing(
        "status", resourceClaimStatuses=[{"name": "t", "resourceClaimName": "c1"}]
    )
    for each in (asked, made):
        await preparing(calls)[0].prepare(each)

    assert [[claim.name for claim in heard] for heard in calls.heard] == [[], ["c1"]]


async def test_not_yet_is_told_once_and_asked_again() -> None:
    calls = Calls()
    calls.answer = ad.PreparePodResponse(verdict=pb.VERDICT_DEFERRED, message="no driver")
    calls.answer.retry_after.FromMilliseconds(1500)
    claims, events = preparing(calls)
    for _ in range(2):
        with pytest.raises(OperationFailed) as failed:
            await claims.prepare(claiming("c1"))

    assert (str(failed.value), failed.value.retry_after) == ("no driver", 1.5)
    assert events == ["FailedPrepareDynamicResources: no driver"]
    claims.forget(["uid-p"])
    with pytest.raises(OperationFailed):
        await claims.prepare(claiming("c1"))
    assert len(events) == 2


async def test_a_service_that_serves_no_claims_keeps_the_pod_from_starting() -> None:
    calls = Calls()
    calls.fails = PreconditionFailed(StatusCode.FAILED_PRECONDITION, "not served here")
    claims, events = preparing(calls, NoClaims())
    with pytest.raises(OperationFailed, match="not served here"):
        await claims.prepare(claiming("c1"))

    assert calls.heard[0][0].error == "no API server is configured"
    assert events == ["FailedPrepareDynamicResources: not served here"]
