"""Pods of many containers: what an admission does grows with them, and not with their square."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.integration.one_node import OneNode, opened

from numalign.kube.core.v1 import core_pb2
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

FEW, MANY = 60, 240


def pod(containers: int, *, init: bool) -> core_pb2.Pod:
    """A Guaranteed pod; with `init` all but the last container end before the next one starts."""
    message = core_pb2.Pod(metadata=core_pb2.ObjectMeta(uid="u", name="n", namespace="default"))
    for number in range(containers):
        before = init and number < containers - 1
        listed = message.spec.init_containers if before else message.spec.containers
        container = listed.add(name=f"c{number}", image="i")
        for name, amount in (("cpu", "1" if init else "10m"), ("memory", "1Mi")):
            container.resources.requests[name].string = amount
            container.resources.limits[name].string = amount
    return message


@contextmanager
def counted() -> Iterator[list[int]]:
    """How many functions are called meanwhile: steps, whatever else the machine does."""
    calls = [0]

    def note(_frame: Any, event: str, _argument: Any) -> None:
        if event in {"call", "c_call"}:
            calls[0] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(before)


async def steps(node: OneNode, containers: int, *, init: bool) -> int:
    request = ad.AdmitRequest(
        pod=pod(containers, init=init), dry_run=True, explain=pb.EXPLAIN_LEVEL_FULL
    )
    with counted() as calls:
        answer = await node.admission.Admit(request)
    assert answer.verdict == pb.VERDICT_ADMITTED, answer
    assert len(answer.allocations) == len(answer.explanation.merges) == containers
    return calls[0]


@pytest.mark.parametrize("init", [False, True], ids=["side-by-side", "one-after-the-other"])
async def test_four_times_the_containers_take_about_four_times_the_steps(init: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="na-") as name:
        async with opened(Path(name)) as node:
            await steps(node, FEW, init=init)
            few, many = [await steps(node, number, init=init) for number in (FEW, MANY)]
    assert many < few * (MANY / FEW) * 1.4
