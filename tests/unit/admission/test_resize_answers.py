"""What is made of a refusal of a resize (RSZ-6)."""

from __future__ import annotations

import pytest

from numalign.admission.resize_answers import answer_resize
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

ALLOCATED = pb.PodResources(
    containers=[
        pb.ContainerResources(container="c", amounts=pb.ResourceAmounts(requests={"cpu": "1"}))
    ]
)
WANTED = pb.PodResources(containers=[pb.ContainerResources(container="c")])


def refused(
    reason: str, verdict: pb.Verdict.ValueType = pb.VERDICT_REJECTED, seconds: int = 0
) -> ad.AdmitResponse:
    response = ad.AdmitResponse(verdict=verdict, handler="h", reason=reason, message="why")
    if seconds:
        response.retry_after.seconds = seconds
    return response


@pytest.mark.parametrize(
    ("response", "verdict", "reason", "own_reason", "seconds"),
    [
        pytest.param(
            refused("Infeasible"), pb.VERDICT_REJECTED, "Infeasible", "Infeasible", 0, id="never"
        ),
        pytest.param(
            refused("OutOfcpu"), pb.VERDICT_DEFERRED, "Deferred", "OutOfcpu", 180, id="later"
        ),
        pytest.param(
            refused("PluginNotBack", pb.VERDICT_DEFERRED, 5),
            pb.VERDICT_DEFERRED,
            "Deferred",
            "PluginNotBack",
            5,
            id="later-as-the-handler-says",
        ),
        pytest.param(
            refused("FreshNodeNeeded", pb.VERDICT_DEFERRED),
            pb.VERDICT_DEFERRED,
            "FreshNodeNeeded",
            "",
            0,
            id="the-caller-reads-the-node",
        ),
    ],
)
def test_refusals(
    response: ad.AdmitResponse,
    verdict: pb.Verdict.ValueType,
    reason: str,
    own_reason: str,
    seconds: int,
) -> None:
    answer_resize(response, ALLOCATED)

    assert (response.verdict, response.reason) == (verdict, reason)
    assert response.handler_reason == own_reason
    assert (response.handler, response.message) == ("h", "why")
    assert response.retry_after.seconds == seconds
    assert response.resources == ALLOCATED


def test_victims_come_first() -> None:
    """PRE-9: the caller ends them and asks again."""
    response = refused("Preempting", pb.VERDICT_DEFERRED)
    response.victims.add(pod_uid="v")
    answer_resize(response, ALLOCATED)

    assert (response.reason, response.handler_reason) == ("Preempting", "")
    assert response.resources == ALLOCATED


def test_what_is_granted_stays_as_it_is() -> None:
    response = ad.AdmitResponse(verdict=pb.VERDICT_ADMITTED, resources=WANTED)
    answer_resize(response, ALLOCATED)

    assert response == ad.AdmitResponse(verdict=pb.VERDICT_ADMITTED, resources=WANTED)
