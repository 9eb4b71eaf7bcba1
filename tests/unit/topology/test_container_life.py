"""AddContainer where a provider does not answer: what the others did stands, and it is repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode, aio
from tests.integration.node_document import pod
from tests.integration.one_node import PROVIDERS, Down, OneNode, opened

from numalign.config.settings import Service
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

ADD = ad.AddContainerRequest(pod_uid="a", container_name="c", container_id="x")


async def init_holds_memory(node: OneNode) -> bool:
    (record,) = (await node.listing()).admissions
    return any(each.container == "i" and each.memory for each in record.allocations)


async def take_down(node: OneNode, service: Service) -> Any:
    # Outcomes are told later, and at the latest before the next pod.
    await node.admission.Admit(ad.AdmitRequest(pod=pod("b"), dry_run=True))
    servicer = node.servicer(service)
    ledger, servicer._ledger = servicer._ledger, Down()
    return ledger


@pytest.mark.parametrize("service", PROVIDERS)
async def test_whoever_is_away_the_call_can_be_made_again(tmp_path: Path, service: Service) -> None:
    async with opened(tmp_path) as node:
        answer = await node.admission.Admit(ad.AdmitRequest(pod=pod("a", init_cpu=1)))
        assert answer.verdict == pb.VERDICT_ADMITTED
        assert await init_holds_memory(node)
        ledger = await take_down(node, service)
        with pytest.raises(aio.AioRpcError) as failed:
            await node.admission.AddContainer(ADD)
        assert failed.value.code() == StatusCode.UNAVAILABLE
        assert f"hint provider {service.value}" in (failed.value.details() or "")
        # What memory freed is not recorded as held: another pod may be given it.
        assert await init_holds_memory(node) is (service is Service.MEMORY)
        node.servicer(service)._ledger = ledger
        for _ in range(2):
            await node.admission.AddContainer(ADD)
            assert not await init_holds_memory(node)
            assert await node.faults() == []


@pytest.mark.parametrize("service", PROVIDERS)
async def test_without_being_repeated_the_books_agree_before_the_next_decision(
    tmp_path: Path, service: Service
) -> None:
    async with opened(tmp_path) as node:
        await node.admission.Admit(ad.AdmitRequest(pod=pod("a", init_cpu=1)))
        ledger = await take_down(node, service)
        with pytest.raises(aio.AioRpcError):
            await node.admission.AddContainer(ADD)
        node.servicer(service)._ledger = ledger
        await node.admission.Admit(ad.AdmitRequest(pod=pod("b"), dry_run=True))
        assert await node.faults() == []
        (record,) = (await node.listing()).admissions
        assert list(record.problems) == []
