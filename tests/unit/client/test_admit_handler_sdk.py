"""Admit handlers on the SDK, with threads and with asyncio, over their sockets."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import DecodeError
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from numalign.kube.core.v1 import core_pb2
from numalign.v1 import admit_handler_pb2 as ah
from numalign.v1 import types_pb2 as pb
from numalign.v1.admit_handler_pb2_grpc import AdmitHandlerStub
from numalign_client.admit_handler.messages import attributes_of, response_of
from numalign_client.errors import failed_call
from numalign_client.sdk import (
    Admit,
    AdmitAttributes,
    AdmitHandlerServer,
    AsyncAdmitHandler,
    AsyncAdmitHandlerServer,
    Defer,
    Judgement,
    Reject,
    SimpleAdmitHandler,
)

Response = ah.JudgeResponse
_POD = core_pb2.Pod(metadata=core_pb2.ObjectMeta(name="p", uid="uid-p"))
_REQUEST = ah.JudgeRequest(pod=_POD.SerializeToString())


class Picky(SimpleAdmitHandler):
    """Rejects one pod after a while, and notes how many calls run at once."""

    name = "picky"

    def __init__(self) -> None:
        self.running = self.most = 0

    def judge(self, attributes: AdmitAttributes) -> Judgement:
        self.running += 1
        self.most = max(self.most, self.running)
        time.sleep(0.01)
        self.running -= 1
        if attributes.pod.metadata.name == "bad":
            raise ValueError("a bug of the author's")
        return Reject("NotThisOne", attributes.pod.metadata.uid)


class Patient(AsyncAdmitHandler):
    """Defers every pod."""

    name = "patient"

    async def judge(self, attributes: AdmitAttributes) -> Judgement:
        await asyncio.sleep(0)
        return Defer("Wait", attributes.pod.metadata.uid, retry_after=0.5)


def test_attributes_as_they_are_asked() -> None:
    other = ah.OtherPod(pod_uid="o", requests={"cpu": "1"})
    request = ah.JudgeRequest(
        pod=_POD.SerializeToString(),
        operation=pb.OPERATION_RESIZE,
        dry_run=True,
        node=core_pb2.Node(metadata=core_pb2.ObjectMeta(name="n")).SerializeToString(),
        node_conditions=["PIDPressure"],
        shutting_down=True,
        other_pods=[other],
        allocated_devices={"example.com/gpu": 2},
    )

    assert attributes_of(request) == AdmitAttributes(
        pod=_POD,
        is_resize=True,
        dry_run=True,
        node=core_pb2.Node(metadata=core_pb2.ObjectMeta(name="n")),
        node_conditions=("PIDPressure",),
        shutting_down=True,
        other_pods=(other,),
        allocated_devices={"example.com/gpu": 2},
    )
    assert attributes_of(_REQUEST) == AdmitAttributes(pod=_POD)


def test_a_pod_that_is_none() -> None:
    with pytest.raises(DecodeError):
        attributes_of(ah.JudgeRequest(pod=b"\xff"))


@pytest.mark.parametrize(
    ("judgement", "response"),
    [
        pytest.param(None, Response(admit=Response.Admit()), id="none"),
        pytest.param(
            Admit(victims=["a"], warnings=["w"]),
            Response(admit=Response.Admit(victim_pod_uids=["a"]), warnings=["w"]),
            id="admit",
        ),
        pytest.param(
            Reject("R", "m", warnings=["w"]),
            Response(reject=Response.Reject(reason="R", message="m"), warnings=["w"]),
            id="reject",
        ),
    ],
)
def test_judgements_as_they_are_sent(judgement: Judgement, response: ah.JudgeResponse) -> None:
    assert response_of(judgement) == response


def test_a_deferral_says_when() -> None:
    defer = response_of(Defer("W", "m", retry_after=1.5, warnings=["w"])).defer

    assert (defer.reason, defer.message) == ("W", "m")
    assert defer.retry_after.ToMilliseconds() == 1500


@pytest.mark.parametrize("judgement", [True, "yes", (False, "r", "m")])
def test_what_is_no_judgement(judgement: Any) -> None:
    with pytest.raises(TypeError, match="was expected, not"):
        response_of(judgement)


def test_calls_come_one_at_a_time_to_a_handler_with_threads(tmp_path: Path) -> None:
    handler = Picky()
    with (
        AdmitHandlerServer(handler, tmp_path / "h.sock"),
        grpc.insecure_channel(f"unix:{tmp_path}/h.sock") as channel,
    ):
        stub = AdmitHandlerStub(channel)
        answers: list[ah.JudgeResponse] = []
        calls = [
            threading.Thread(target=lambda: answers.append(stub.Judge(_REQUEST, timeout=60)))
            for _ in range(4)
        ]
        for call in calls:
            call.start()
        for call in calls:
            call.join()
        healthy = health_pb2_grpc.HealthStub(channel).Check(
            health_pb2.HealthCheckRequest(service="numalign.v1.AdmitHandler"), timeout=60
        )

    assert [answer.reject.message for answer in answers] == ["uid-p"] * 4
    assert handler.most == 1
    assert healthy.status == health_pb2.HealthCheckResponse.SERVING


def test_an_exception_is_no_judgement(tmp_path: Path) -> None:
    bad = core_pb2.Pod(metadata=core_pb2.ObjectMeta(name="bad"))
    with (
        AdmitHandlerServer(Picky(), tmp_path / "h.sock"),
        grpc.insecure_channel(f"unix:{tmp_path}/h.sock") as channel,
        pytest.raises(grpc.RpcError) as failed,
    ):
        AdmitHandlerStub(channel).Judge(ah.JudgeRequest(pod=bad.SerializeToString()), timeout=60)

    assert failed_call(failed.value).code() is grpc.StatusCode.UNKNOWN


async def test_a_handler_with_asyncio(tmp_path: Path) -> None:
    async with (
        AsyncAdmitHandlerServer(Patient(), tmp_path / "h.sock"),
        aio.insecure_channel(f"unix:{tmp_path}/h.sock") as channel,
    ):
        answer = await AdmitHandlerStub(channel).Judge(_REQUEST, timeout=60)
        healthy = await health_pb2_grpc.HealthStub(channel).Check(
            health_pb2.HealthCheckRequest(), timeout=60
        )

    assert (answer.defer.reason, answer.defer.message) == ("Wait", "uid-p")
    assert healthy.status == health_pb2.HealthCheckResponse.SERVING


def test_the_page_shows_the_example_as_it_is() -> None:
    root = Path(__file__).parents[3]
    page = (root / "docs" / "writing-an-admit-handler.md").read_text(encoding="utf-8")
    example = (root / "clients" / "examples" / "pod-quota" / "handler.py").read_text("utf-8")
    shown = re.findall(r"```python\n(.*?)```", page, re.DOTALL)

    assert len(shown) == 2
    assert all(
        block in example.replace("    AdmitHandlerServer", "AdmitHandlerServer") for block in shown
    )
