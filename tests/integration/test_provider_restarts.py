"""A provider that restarts in the middle of an admission: no decision, and nothing kept."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode, aio
from tests.integration.node_document import pod
from tests.integration.one_node import PROVIDERS, OneNode, opened
from tests.waiting import LONG, answered

from numalign.config.settings import Service
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb


def before(node: OneNode, service: Service, method: str, then: Any) -> None:
    """Run `then` once, before a method of a provider's ledger."""
    ledger = node.servicer(service)._ledger
    inner = getattr(ledger, method)

    async def called(*args: Any, **kwargs: Any) -> Any:
        setattr(ledger, method, inner)
        await then()
        return await getattr(node.servicer(service)._ledger, method)(*args, **kwargs)

    setattr(ledger, method, called)


@pytest.mark.parametrize("method", ["hints", "allocate"])
@pytest.mark.parametrize("service", PROVIDERS)
async def test_restart_inside_an_admission(tmp_path: Path, service: Service, method: str) -> None:
    async with opened(tmp_path) as node:
        await node.admission.Admit(ad.AdmitRequest(pod=pod("before")))
        held = await node.listing()
        before(node, service, method, lambda: node.restart_provider(service))
        with pytest.raises(aio.AioRpcError) as failed:
            await node.admission.Admit(ad.AdmitRequest(pod=pod("during")))
        assert failed.value.code() == StatusCode.UNAVAILABLE
        assert f"hint provider {service}: restarted" in str(failed.value.details())
        assert await node.faults() == []
        assert list((await node.listing()).admissions) == list(held.admissions)
        again = await node.admission.Admit(ad.AdmitRequest(pod=pod("during")))
        assert again.verdict == pb.VERDICT_ADMITTED
        assert await node.faults() == []


@pytest.mark.parametrize("when", ["behind-the-answer", "as-the-commit-arrives"])
@pytest.mark.parametrize("service", PROVIDERS)
async def test_restart_before_it_hears_of_the_commit(
    tmp_path: Path, service: Service, when: str
) -> None:
    async with opened(tmp_path) as node:
        restarted = asyncio.Event()

        async def restart() -> None:
            await node.restart_provider(service)
            restarted.set()

        # Its part is prepared on disk, and the outcome stands back behind the answer.
        if when == "as-the-commit-arrives":
            before(node, service, "commit", restart)
        answer = await node.admission.Admit(ad.AdmitRequest(pod=pod("a")))
        if when == "behind-the-answer":
            await restart()
        await asyncio.wait_for(restarted.wait(), LONG)

        tries = []

        async def probe() -> ad.AdmitResponse:
            tries.append(service)
            request = ad.AdmitRequest(pod=pod("probe", gpus=0), dry_run=True)
            return await node.admission.Admit(request)

        await answered(probe, StatusCode.UNAVAILABLE)
        # A call notices the restart and ends without a decision, unless it was noticed before.
        assert len(tries) <= 2
        (record,) = (await node.listing()).admissions
        assert list(record.allocations) == list(answer.allocations)
        assert await node.faults() == []
