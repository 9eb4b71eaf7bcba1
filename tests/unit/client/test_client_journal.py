"""Decisions of the past, by both clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.unit.client.conftest import ScriptedAdmission

from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import types_pb2 as pb
from numalign_client import (
    AsyncClient,
    Client,
    History,
    NotAdmitted,
    PastDecision,
    PreconditionFailed,
    Verdict,
    Victim,
)

Call = Callable[..., Any]
EARLY = datetime(2026, 1, 31, 8, tzinfo=UTC)
LATE = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


def record() -> dc.DecisionRecord:
    made = dc.DecisionRecord(
        number=5,
        times=3,
        pod_uid="u1",
        namespace="default",
        name="big",
        owner="kubelet",
        operation=pb.OPERATION_ADD,
        verdict=pb.VERDICT_REJECTED,
        handler="topology-manager",
        reason="TopologyAffinityError",
        message="Resources cannot be allocated",
        victims=[pb.Victim(pod_uid="v", namespace="n", name="x")],
        warnings=["mind"],
        revision=7,
    )
    made.first_time.FromDatetime(EARLY)
    made.last_time.FromDatetime(LATE)
    made.took.FromMicroseconds(2500)
    made.explanation.summary = "Rejected."
    made.explanation.obstacles.add(would_fit="cpu of at most 2 on NUMA node 0")
    return made


def _blocking(socket: Path, method: str, *args: Any, **options: Any) -> Any:
    with Client(socket) as client:
        return getattr(client, method)(*args, **options)


def _with_asyncio(socket: Path, method: str, *args: Any, **options: Any) -> Any:
    async def run() -> Any:
        async with AsyncClient(socket) as client:
            return await getattr(client, method)(*args, **options)

    return asyncio.run(run())


@pytest.fixture(params=[_blocking, _with_asyncio], ids=["blocking", "asyncio"])
def call(request: pytest.FixtureRequest, socket: Path) -> Call:
    return lambda method, *args, **options: request.param(socket, method, *args, **options)


def test_the_last_decision_on_a_pod(call: Call, admission: ScriptedAdmission) -> None:
    admission.journal.decisions.append(record())

    found: PastDecision = call("explain", "default/big")

    assert found == PastDecision(
        number=5,
        first_time=EARLY,
        last_time=LATE,
        times=3,
        pod_uid="u1",
        namespace="default",
        name="big",
        owner="kubelet",
        resize=False,
        verdict=Verdict.REJECTED,
        handler="topology-manager",
        reason="TopologyAffinityError",
        message="Resources cannot be allocated",
        took=0.0025,
        victims=(Victim("v", "n", "x"),),
        warnings=("mind",),
        revision=7,
        explanation=record().explanation,
    )
    assert (found.admitted, found.summary) == (False, "Rejected.")
    assert found.would_fit == "cpu of at most 2 on NUMA node 0"
    assert str(found) == (
        "default/big rejected (TopologyAffinityError: Resources cannot be allocated)"
    )
    assert admission.requests == [dc.GetDecisionRequest(pod="default/big")]


def test_a_decision_by_its_number(call: Call, admission: ScriptedAdmission) -> None:
    admission.journal.decisions.append(record())

    assert call("explain", number=5).number == 5
    assert admission.requests == [dc.GetDecisionRequest(number=5)]


def test_what_is_asked_for(call: Call, admission: ScriptedAdmission) -> None:
    call(
        "decisions",
        verdicts=["rejected", Verdict.DEFERRED],
        reasons=["OutOfcpu"],
        pod="big",
        owner="me",
        since=EARLY,
        until=LATE,
        limit=3,
        explanations=True,
    )

    (request,) = admission.requests
    assert list(request.filter.verdicts) == [pb.VERDICT_REJECTED, pb.VERDICT_DEFERRED]
    assert list(request.filter.reasons) == ["OutOfcpu"]
    assert (request.filter.pod, request.filter.owner) == ("big", "me")
    assert request.filter.since.ToDatetime(UTC) == EARLY
    assert request.filter.until.ToDatetime(UTC) == LATE
    assert (request.limit, request.with_explanations) == (3, True)


def test_what_is_answered(call: Call, admission: ScriptedAdmission) -> None:
    assert call("decisions") == History((), 0, None)
    admission.journal.decisions.append(record())
    admission.journal.left_out = 4
    admission.journal.kept_since.FromDatetime(EARLY)

    found = call("decisions")

    assert [decision.name for decision in found.decisions] == ["big"]
    assert (found.left_out, found.kept_since) == (4, EARLY)


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("explain", {}, "either a pod or the number of a decision must be named"),
        ("explain", {"pod": "a", "number": 1}, "either a pod or the number"),
        ("decisions", {"verdicts": ["maybe"]}, "'maybe' is not a valid Verdict"),
        ("decisions", {"limit": 0}, "limit must be at least 1, not 0"),
        ("decisions", {"since": datetime(2026, 1, 1)}, "since must have a time zone"),  # noqa: DTZ001
    ],
    ids=["nothing", "both", "verdict", "limit", "time"],
)
def test_what_makes_no_sense_is_not_sent(
    call: Call,
    admission: ScriptedAdmission,
    method: str,
    options: dict[str, Any],
    message: str,
) -> None:
    with pytest.raises(ValueError, match=message):
        call(method, **options)

    assert admission.requests == []


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (grpc.StatusCode.NOT_FOUND, NotAdmitted),
        (grpc.StatusCode.FAILED_PRECONDITION, PreconditionFailed),
    ],
    ids=["unknown", "no journal"],
)
def test_what_is_not_there(
    call: Call, admission: ScriptedAdmission, code: grpc.StatusCode, error: type[Exception]
) -> None:
    admission.fails = lambda context: context.abort(code, "it goes back to yesterday")

    with pytest.raises(error, match="it goes back to yesterday"):
        call("explain", "nobody")
