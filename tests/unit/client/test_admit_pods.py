"""Pods in one stream: an answer for each, in order, and what ends a stream early."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.unit.client.conftest import ScriptedAdmission

from numalign.v1 import admission_pb2 as ad
from numalign_client import AdmissionError, InvalidRequest, ServiceUnavailable
from numalign_client.asynchronous import AsyncAdmissionClient
from numalign_client.wire import Pod

Answer = ad.AdmitResponse | AdmissionError


def pod(uid: str) -> Pod:
    return {"metadata": {"uid": uid, "name": "p"}, "spec": {"containers": [{"name": "c"}]}}


def answers(socket: Path, pods: Iterable[Pod], timeout: float = 5) -> list[Answer]:
    async def run() -> list[Answer]:
        async with AsyncAdmissionClient(socket) as client:
            stream = client.admit_pods(pods, owner="o", dry_run=True, timeout=timeout)
            return [answer async for answer in stream]

    return asyncio.run(run())


def test_each_pod_has_its_answer_and_an_error_is_one(
    socket: Path, admission: ScriptedAdmission
) -> None:
    first, second, third = answers(socket, [pod("a"), pod(""), pod("b")])

    assert isinstance(first, ad.AdmitResponse)
    assert isinstance(second, InvalidRequest)
    assert second.message == "metadata.uid: Required value"
    assert isinstance(third, ad.AdmitResponse)
    asked: list[Any] = admission.requests
    assert [(r.pod.metadata.uid, r.owner, r.dry_run) for r in asked] == [
        ("a", "o", True),
        ("b", "o", True),
    ]


def test_no_pods_are_no_answers(socket: Path) -> None:
    assert answers(socket, []) == []


def test_a_stream_that_ends_early_raises(socket: Path, admission: ScriptedAdmission) -> None:
    def fails(context: grpc.ServicerContext) -> None:
        context.abort(grpc.StatusCode.UNAVAILABLE, "gone")

    admission.fails = fails

    with pytest.raises(ServiceUnavailable):
        answers(socket, [pod("a"), pod("b")])
