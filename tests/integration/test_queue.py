"""Calls wait for their turn: in order, not too many, and not longer than they have time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from grpc import StatusCode, aio
from tests.integration.node_document import pod
from tests.integration.one_node import OneNode, opened

from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb


def admit(node: OneNode, uid: str, timeout: float | None = None) -> asyncio.Task[ad.AdmitResponse]:
    async def call() -> ad.AdmitResponse:
        return await node.admission.Admit(
            ad.AdmitRequest(pod=pod(uid, gpus=0, memory="1Mi")), timeout=timeout
        )

    return asyncio.ensure_future(call())


async def until_waiting(node: OneNode, count: int) -> None:
    async with asyncio.timeout(60):
        while node.turnstile.waiting != count:  # noqa: ASYNC110 - no event says it
            await asyncio.sleep(0)


async def test_calls_are_decided_in_order_of_arrival(tmp_path: Path) -> None:
    async with opened(tmp_path) as node:
        async with node.turnstile.turn():
            calls = []
            for number in range(12):
                calls.append(admit(node, f"pod-{number}"))
                await until_waiting(node, number + 1)
        answers = await asyncio.gather(*calls)
        assert {answer.verdict for answer in answers} == {pb.VERDICT_ADMITTED}
        revisions = [answer.revision for answer in answers]
        assert revisions == sorted(revisions)
        listed = [record.pod_uid for record in (await node.listing()).admissions]
        assert listed == [f"pod-{number}" for number in range(12)]


async def test_one_call_too_many_is_turned_away(tmp_path: Path) -> None:
    async with opened(tmp_path, queueDepth=2) as node:
        async with node.turnstile.turn():
            waiting = [admit(node, "a"), admit(node, "b")]
            await until_waiting(node, 2)
            with pytest.raises(aio.AioRpcError) as refused:
                await admit(node, "c")
            assert refused.value.code() == StatusCode.RESOURCE_EXHAUSTED
        for answer in await asyncio.gather(*waiting):
            assert answer.verdict == pb.VERDICT_ADMITTED
        assert [r.pod_uid for r in (await node.listing()).admissions] == ["a", "b"]
        assert (await admit(node, "c")).verdict == pb.VERDICT_ADMITTED


async def test_a_deadline_passes_while_waiting(tmp_path: Path) -> None:
    async with opened(tmp_path) as node:
        async with node.turnstile.turn():
            with pytest.raises(aio.AioRpcError) as late:
                await admit(node, "late", timeout=0.05)
            assert late.value.code() == StatusCode.DEADLINE_EXCEEDED
            await until_waiting(node, 0)
        assert (await node.listing()).admissions == []
        assert await node.faults() == []


async def test_a_call_that_is_given_up_leaves_the_queue(tmp_path: Path) -> None:
    async with opened(tmp_path) as node:
        async with node.turnstile.turn():
            first, given_up, last = (admit(node, uid) for uid in ("a", "b", "c"))
            await until_waiting(node, 3)
            given_up.cancel()
            await until_waiting(node, 2)
        await asyncio.gather(first, last)
        assert [r.pod_uid for r in (await node.listing()).admissions] == ["a", "c"]
