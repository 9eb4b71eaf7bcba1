"""What a handler of others is told, and what it may answer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from google.protobuf.duration_pb2 import Duration
from tests.unit.admission.handlers.admit_pods import CRITICAL, pod

from numalign.admission.chain.question import NodeFacts, Operation, Question, Sent
from numalign.admission.handlers.predicates import DeviceCounts
from numalign.admission.others.messages import (
    DEFAULT_RETRY_SECONDS,
    BadAnswer,
    OtherPods,
    answer_of,
    judge_request,
    other_pod,
)
from numalign.model.feature_gates import FeatureGates
from numalign.v1 import admit_handler_pb2 as ah
from numalign.v1 import types_pb2 as pb

_OTHERS = (pod("a", requests={"cpu": "1500m"}), pod("b", priority=CRITICAL))
_QUESTION = Question(
    pod=pod(),
    facts=NodeFacts(node=None, conditions=("DiskPressure",), shutting_down=True),
    others=_OTHERS,
    operation=Operation.RESIZE,
    devices=DeviceCounts(allocated={"example.com/gpu": 3}),
    sent=Sent(pod=b"pod", node=b"node", dry_run=True),
)
Response = ah.JudgeResponse


def test_everything_is_told() -> None:
    request = judge_request(_QUESTION, OtherPods(FeatureGates()).messages(_OTHERS))

    assert request == ah.JudgeRequest(
        pod=b"pod",
        operation=pb.OPERATION_RESIZE,
        dry_run=True,
        node=b"node",
        node_conditions=["DiskPressure"],
        shutting_down=True,
        other_pods=[
            ah.OtherPod(pod_uid="uid-a", name="a", requests={"cpu": "1500m"}),
            ah.OtherPod(pod_uid="uid-b", name="b", priority=CRITICAL),
        ],
        allocated_devices={"example.com/gpu": 3},
    )


def test_a_pod_that_stays_the_same_is_told_anew_only_when_it_changes() -> None:
    pods = OtherPods(FeatureGates())
    first = pods.messages(_OTHERS)
    second = pods.messages([replace(_OTHERS[0], labels={"x": "y"}), _OTHERS[1]])

    assert second[0].labels == {"x": "y"}
    assert second[1] is first[1]
    assert [message.pod_uid for message in pods.messages(_OTHERS[1:])] == ["uid-b"]


def test_what_a_status_adds_counts() -> None:
    """PRED-7."""
    shrinking = pod(
        "s",
        requests={"cpu": "1"},
        status={"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]},
    )

    assert other_pod(shrinking, FeatureGates()).requests == {"cpu": "2"}


def test_what_is_admitted() -> None:
    answer = answer_of(Response(admit=Response.Admit(), warnings=["w"]), _QUESTION)

    assert (answer.verdict.admit, answer.victims, answer.warnings) == (True, (), ("w",))


def test_victims_come_in_the_order_given_and_once() -> None:
    admit = Response.Admit(victim_pod_uids=["uid-b", "uid-a", "uid-b"])

    assert answer_of(Response(admit=admit), _QUESTION).victims == (_OTHERS[1], _OTHERS[0])


@pytest.mark.parametrize(
    "reason", ["NoLicence", "OutOfexample.com/gpu", "a", "OutOfephemeral-storage"]
)
def test_what_is_rejected(reason: str) -> None:
    answer = answer_of(Response(reject=Response.Reject(reason=reason, message="m")), _QUESTION)

    assert (answer.verdict.admit, answer.verdict.reason, answer.verdict.message) == (
        False,
        reason,
        "m",
    )
    assert answer.retry_after is None


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [
        pytest.param(Duration(seconds=2, nanos=500_000_000), 2.5, id="told"),
        pytest.param(None, DEFAULT_RETRY_SECONDS, id="not told"),
    ],
)
def test_what_is_deferred(retry_after: Duration | None, seconds: float) -> None:
    defer = Response.Defer(reason="Wait", message="m", retry_after=retry_after)

    assert answer_of(Response(defer=defer), _QUESTION).retry_after == seconds


@pytest.mark.parametrize(
    ("response", "why"),
    [
        pytest.param(Response(), "has no verdict", id="empty"),
        pytest.param(Response(warnings=["w"]), "has no verdict", id="warnings alone"),
        pytest.param(Response(reject=Response.Reject()), "reject.reason", id="no reason"),
        pytest.param(
            Response(reject=Response.Reject(reason="two words")), '"two words"', id="two words"
        ),
        pytest.param(
            Response(reject=Response.Reject(reason="R\n")), "reject.reason", id="line break"
        ),
        pytest.param(
            Response(reject=Response.Reject(reason="R" * 129)), "reject.reason", id="long reason"
        ),
        pytest.param(
            Response(reject=Response.Reject(reason="R", message="m" * 4097)),
            "reject.message has 4097 characters",
            id="long message",
        ),
        pytest.param(
            Response(admit=Response.Admit(), warnings=["w" * 4097]), "warnings", id="long warning"
        ),
        pytest.param(Response(defer=Response.Defer(reason="")), "defer.reason", id="deferral"),
        pytest.param(
            Response(defer=Response.Defer(reason="W", retry_after=Duration())),
            "not more than 0: 0 s",
            id="at once",
        ),
        pytest.param(
            Response(defer=Response.Defer(reason="W", retry_after=Duration(seconds=-1))),
            "not more than 0: -1 s",
            id="before",
        ),
        pytest.param(
            Response(admit=Response.Admit(victim_pod_uids=["uid-a", "uid-p"])),
            'none of the other pods: "uid-p"',
            id="unknown victim",
        ),
    ],
)
def test_what_is_no_decision(response: ah.JudgeResponse, why: str) -> None:
    with pytest.raises(BadAnswer, match=why):
        answer_of(response, _QUESTION)
