"""The journal of a whole node: every decision, explained afterwards, whatever was asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode
from grpc.aio import AioRpcError
from tests.unit.process.observed_world import pod, settings

from numalign.config.settings import Service
from numalign.process.decision_journal import open_journal
from numalign.process.node import Node
from numalign.rpc.channel import open_channel
from numalign.telemetry import own_metrics
from numalign.telemetry.metrics import Metrics
from numalign.topology import manager
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import types_pb2 as pb
from numalign.v1.topology_pb2_grpc import TopologyManagerStub


@asynccontextmanager
async def admission(directory: Path, **numalign: Any) -> AsyncIterator[ad_grpc.AdmissionAsyncStub]:
    node = await Node.open(settings(directory, **numalign))
    try:
        await node.serving()
        yield ad_grpc.AdmissionStub(node.channel(Service.ADMISSION))
    finally:
        await node.close()


async def test_a_refusal_nobody_asked_about_is_explained_after_a_restart(tmp_path: Path) -> None:
    async with admission(tmp_path) as stub:
        answer = await stub.Admit(ad.AdmitRequest(pod=pod("big", cpu="20")))
        assert answer.verdict == pb.VERDICT_REJECTED
        assert not answer.HasField("explanation")
    async with admission(tmp_path) as stub:
        found = (await stub.GetDecision(dc.GetDecisionRequest(pod="default/big"))).decision
    assert found.reason == "TopologyAffinityError"
    assert "What would have fitted: cpu of at most" in found.explanation.summary
    assert found.explanation.obstacles[0].resources == ["cpu"]
    assert found.explanation.merges[0].providers


async def test_explanations_that_are_too_long_for_one_message_come_in_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "MOST_EXPLAINED_BYTES", 1)
    names = ["a", "b", "c"]
    async with admission(tmp_path) as stub:
        for name in names:
            await stub.Admit(ad.AdmitRequest(pod=pod(name)))
        found = await stub.ListDecisions(dc.ListDecisionsRequest(with_explanations=True))
    assert [record.name for record in found.decisions] == names[::-1]
    assert all(len(record.explanation.merges) == 1 for record in found.decisions)


async def test_an_admission_has_hints_and_masks(tmp_path: Path) -> None:
    async with admission(tmp_path) as stub:
        await stub.Admit(ad.AdmitRequest(pod=pod("a")))
        found = (await stub.GetDecision(dc.GetDecisionRequest(pod="a"))).decision
    assert found.verdict == pb.VERDICT_ADMITTED
    assert found.allocations[0].affinity.mask == 1
    (merge,) = found.explanation.merges
    assert merge.best.mask == 1
    assert {answer.provider for answer in merge.providers} == {"device", "cpu", "memory"}
    assert found.took.nanos > 0


@pytest.mark.parametrize(
    ("level", "summary", "merges"),
    [
        pytest.param(pb.EXPLAIN_LEVEL_NONE, False, False, id="none"),
        pytest.param(pb.EXPLAIN_LEVEL_SUMMARY, True, False, id="summary"),
        pytest.param(pb.EXPLAIN_LEVEL_FULL, True, True, id="full"),
    ],
)
async def test_an_answer_says_no_more_than_was_asked(
    tmp_path: Path, level: pb.ExplainLevel.ValueType, summary: bool, merges: bool
) -> None:
    async with admission(tmp_path) as stub:
        answer = await stub.Admit(ad.AdmitRequest(pod=pod("big", cpu="20"), explain=level))
    assert bool(answer.explanation.summary) is summary
    assert bool(answer.explanation.obstacles) is summary
    assert bool(answer.explanation.merges) is merges


async def test_dry_runs_and_answers_from_the_record_are_no_decisions(tmp_path: Path) -> None:
    async with admission(tmp_path) as stub:
        await stub.Admit(ad.AdmitRequest(pod=pod("a"), dry_run=True))
        await stub.Admit(ad.AdmitRequest(pod=pod("a")))
        await stub.Admit(ad.AdmitRequest(pod=pod("a")))
        listed = await stub.ListDecisions(dc.ListDecisionsRequest())
    assert [(d.name, d.times) for d in listed.decisions] == [("a", 1)]


async def test_without_a_journal_the_question_is_answered_plainly(tmp_path: Path) -> None:
    async with admission(tmp_path, journal={"size": 0}) as stub:
        await stub.Admit(ad.AdmitRequest(pod=pod("a")))
        with pytest.raises(AioRpcError, match=r"numalign.journal.size is 0") as caught:
            await stub.ListDecisions(dc.ListDecisionsRequest())
    assert caught.value.code() is StatusCode.FAILED_PRECONDITION
    assert not (tmp_path / "state" / "journal").exists()


async def test_a_question_about_nothing(tmp_path: Path) -> None:
    async with admission(tmp_path) as stub:
        with pytest.raises(AioRpcError, match="pod: Required value"):
            await stub.GetDecision(dc.GetDecisionRequest())


async def test_a_topology_manager_that_is_away_is_named_in_the_decision(tmp_path: Path) -> None:
    channel = open_channel(tmp_path / "nobody.sock")
    metrics = Metrics(own_metrics.JOURNAL, enabled=False)
    journal = open_journal(settings(tmp_path), TopologyManagerStub(channel), metrics)
    assert journal is not None
    record = dc.DecisionRecord(pod_uid="uid-a", name="a", verdict=pb.VERDICT_ADMITTED)
    journal.note(record)
    found = await journal.get(dc.GetDecisionRequest(pod="a"))
    await journal.close()
    await channel.close()
    assert found.explanation.summary.startswith("Not explained: the Topology Manager did not")
