"""Streams of pods: each is decided on as by a call of its own, and many share one recording."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from grpc import StatusCode, aio
from tests.integration.books import held_by
from tests.integration.node_document import pod
from tests.integration.one_node import OneNode, opened
from tests.integration.streamed_pods import ADMITTED, DEFERRED, REJECTED, small, stream, verdicts
from tests.integration.test_admission_chain import _CRITICAL, _pod, _request, _set_node

from numalign.config.settings import Service
from numalign.errors import StateNotWritten
from numalign.kube.core.v1 import core_pb2
from numalign.topology.group import LARGEST, Group
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb


def mixed() -> list[core_pb2.Pod]:
    """Pods of which some fit, some are refused by the merge, and some find no device left."""
    return [
        pod("a", cpu=2),
        pod("b", cpu=12),
        pod("c", cpu=1, init_cpu=2),
        pod("d", cpu=3, gpus=2),
        pod("e", cpu=1),
        small("f"),
        pod("g", cpu=4, gpus=0),
        pod("h", cpu=4, gpus=0),
        pod("i", cpu=1, gpus=0),
    ]


async def test_pods_get_what_they_would_get_one_by_one(tmp_path: Path) -> None:
    async with opened(tmp_path) as node:
        alone = [await node.admission.Admit(ad.AdmitRequest(pod=each)) for each in mixed()]
        await release_all(node)

        answers = await stream(node.admission, mixed())

        assert [answer.pod_uid for answer in answers] == [each.metadata.uid for each in mixed()]
        assert {REJECTED, ADMITTED} == set(verdicts(answers))
        for one, streamed in zip(alone, answers, strict=True):
            decision = streamed.decision
            assert (decision.verdict, decision.reason, decision.message) == (
                one.verdict,
                one.reason,
                one.message,
            )
            assert held_by(decision.allocations) == held_by(one.allocations)
        assert await node.faults() == []


async def test_every_pod_has_a_revision_of_its_own_as_it_is_recorded(tmp_path: Path) -> None:
    async with opened(tmp_path) as node:
        answers = await stream(node.admission, [small("a"), pod("big", cpu=12), small("b")])

        recorded = {each.pod_uid: each.revision for each in (await node.listing()).admissions}
        a, big, b = (answer.decision.revision for answer in answers)
        assert recorded == {"a": a, "b": b}
        assert a <= big <= b
        assert a < b


async def test_a_pod_that_comes_twice_is_answered_from_the_record(tmp_path: Path) -> None:
    async with opened(tmp_path) as node:
        await node.admission.Admit(ad.AdmitRequest(pod=small("before")))

        answers = await stream(
            node.admission, [small(uid) for uid in ("a", "a", "before", "b", "a")]
        )

        assert verdicts(answers) == [ADMITTED] * 5
        assert [each.decision.already_admitted for each in answers] == [
            False,
            True,
            True,
            False,
            True,
        ]
        assert await node.faults() == []


async def test_what_cannot_be_judged_leaves_the_others_alone(tmp_path: Path) -> None:
    odd = ad.AdmitRequest(pod=small("odd"), operation=77)  # type: ignore[arg-type]
    unknown = ad.AdmitRequest(pod=small("unknown"), operation=pb.OPERATION_RESIZE)
    nameless = small("")
    tried = ad.AdmitRequest(pod=pod("tried", cpu=4), dry_run=True)
    async with opened(tmp_path) as node:
        answers = await stream(
            node.admission,
            [small("a"), odd, nameless, unknown, tried, ad.AdmitRequest(), small("b")],
        )

        refused, missing = StatusCode.INVALID_ARGUMENT.value[0], StatusCode.NOT_FOUND.value[0]
        assert verdicts(answers) == [
            ADMITTED,
            -refused,
            -refused,
            -missing,
            ADMITTED,
            -refused,
            ADMITTED,
        ]
        assert answers[4].decision.dry_run
        assert [each.pod_uid for each in (await node.listing()).admissions] == ["a", "b"]
        assert await node.faults() == []


async def test_only_in_order_nobody_is_judged_behind_one_that_was_not(tmp_path: Path) -> None:
    def in_order(each: core_pb2.Pod) -> ad.AdmitRequest:
        return ad.AdmitRequest(pod=each, only_in_order=True)

    async with opened(tmp_path) as node:
        answers = await stream(
            node.admission,
            [*map(in_order, (small("a"), pod("big", cpu=12), small(""), small("b"))), small("c")],
        )

        refused, aborted = StatusCode.INVALID_ARGUMENT.value[0], StatusCode.ABORTED.value[0]
        assert verdicts(answers) == [ADMITTED, REJECTED, -refused, -aborted, ADMITTED]
        assert "a pod before it in the stream" in answers[3].error.message
        assert [each.pod_uid for each in (await node.listing()).admissions] == ["a", "c"]
        assert await node.faults() == []


async def test_a_caller_that_waits_for_each_answer_gets_it_at_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as node:
        call = node.admission.AdmitPods()
        for uid in ("a", "b", "c"):
            await call.write(ad.AdmitPodsRequest(admit=ad.AdmitRequest(pod=small(uid))))
            answer = await asyncio.wait_for(call.read(), 30)
            assert isinstance(answer, ad.AdmitPodsResponse)
            assert answer.decision.verdict == ADMITTED
        await call.done_writing()
        assert await call.read() is aio.EOF


async def test_who_waits_for_a_turn_gets_it_before_the_stream_ends(tmp_path: Path) -> None:
    async with opened(tmp_path) as node:
        streaming = asyncio.ensure_future(
            stream(node.admission, [small(f"s{n}") for n in range(3 * LARGEST)])
        )
        single = await node.admission.Admit(ad.AdmitRequest(pod=small("single")), timeout=60)
        answers = await streaming

        assert single.verdict == ADMITTED
        assert verdicts(answers) == [ADMITTED] * 3 * LARGEST
        assert single.revision < answers[-1].decision.revision


@pytest.mark.parametrize("largest", [1, 3], ids=["groups-of-1", "groups-of-3"])
async def test_groups_may_be_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, largest: int
) -> None:
    monkeypatch.setattr("numalign.topology.pod_stream.LARGEST", largest)
    async with opened(tmp_path) as node:
        answers = await stream(node.admission, [small(f"s{n}") for n in range(7)])

        assert verdicts(answers) == [ADMITTED] * 7
        assert await node.faults() == []


async def test_a_group_that_cannot_be_recorded_is_lost_and_can_be_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod that was refused in it, too: it may have been for a pod that is not there."""
    pods = [pod("a", cpu=4, gpus=0), pod("b", cpu=12), pod("c", cpu=4, gpus=0)]
    async with opened(tmp_path) as node:
        records = node.servicer(Service.TOPOLOGY)._records
        with monkeypatch.context() as broken:
            broken.setattr(records._store._database, "write", _full)
            answers = await stream(node.admission, pods)

        assert verdicts(answers) == [-StatusCode.UNAVAILABLE.value[0]] * 3
        assert list((await node.listing()).admissions) == []
        assert await node.faults() == []
        assert verdicts(await stream(node.admission, pods)) == [ADMITTED, REJECTED, ADMITTED]
        assert await node.faults() == []


async def test_a_caller_that_hangs_up_leaves_whole_pods_or_none(tmp_path: Path) -> None:
    pods = [pod(f"s{n}", cpu=1, gpus=0, memory="1Mi") for n in range(8)]
    async with opened(tmp_path) as node:
        for heard in range(8):
            call = node.admission.AdmitPods(
                iter([ad.AdmitPodsRequest(admit=ad.AdmitRequest(pod=each)) for each in pods])
            )
            answers = aiter(call)
            told = [await anext(answers) for _ in range(heard)]
            call.cancel()
            await node.settled()

            recorded = {each.pod_uid for each in (await node.listing()).admissions}
            assert {answer.pod_uid for answer in told} <= recorded
            assert await node.faults() == []
            await release_all(node)


async def test_as_a_kubelet_pods_of_a_stream_are_decided_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Group, "add", None)
    async with opened(tmp_path, compatibility="kubelet") as node:
        answers = await stream(node.admission, mixed())

        assert {REJECTED, ADMITTED} == set(verdicts(answers))


async def test_beside_a_provider_that_takes_one_pod_at_a_time_each_is_decided_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Group, "add", None)
    async with opened(tmp_path) as node:
        node.servicer(Service.TOPOLOGY)._registry.handles[0].takes_groups = False

        answers = await stream(node.admission, mixed())

        assert {REJECTED, ADMITTED} == set(verdicts(answers))
        assert await node.faults() == []


async def test_the_chain_counts_pods_that_are_not_recorded_yet(tmp_path: Path) -> None:
    """Deferred and rejected ones in the middle take no place."""
    root = tmp_path / "root"
    root.mkdir()
    async with opened(tmp_path, hostRoot=str(root)) as node:
        await _set_node(node, cpu="4", pods="4")
        critical = _request(_pod("critical", cpu="2", priority=_CRITICAL))
        pods: Sequence[ad.AdmitRequest] = [
            _request(_pod("a", cpu="2")),
            _request(_pod("b", cpu="1", gpus=1)),
            _request(_pod("much", cpu="3")),
            critical,
            _request(_pod("elsewhere", nodeName="other")),
            _request(_pod("c", cpu="1")),
            _request(_pod("d", cpu="1")),
        ]

        answers = await stream(node.admission, pods)

        assert verdicts(answers) == [
            ADMITTED,
            ADMITTED,
            REJECTED,
            DEFERRED,
            REJECTED,
            ADMITTED,
            REJECTED,
        ]
        assert [each.decision.reason for each in answers if each.decision.reason] == [
            "OutOfcpu",
            "Preempting",
            "NodeName",
            "OutOfcpu",
        ]
        assert [victim.pod_uid for victim in answers[3].decision.victims] == ["uid-b"]
        assert await node.faults() == []


async def test_only_in_order_nobody_is_judged_behind_one_with_victims(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    async with opened(tmp_path, hostRoot=str(root)) as node:
        await _set_node(node, cpu="4", pods="2")
        pods = [
            _request(_pod("a", cpu="2")),
            _request(_pod("b", cpu="1", gpus=1)),
            _request(_pod("critical", cpu="2", priority=_CRITICAL)),
            _request(_pod("elsewhere", nodeName="other")),
        ]
        for request in pods:
            request.only_in_order = True

        answers = await stream(node.admission, pods)

        aborted = StatusCode.ABORTED.value[0]
        assert verdicts(answers) == [ADMITTED, ADMITTED, DEFERRED, -aborted]
        assert answers[2].decision.victims
        assert await node.faults() == []


async def release_all(node: OneNode) -> None:
    """Release whatever is admitted."""
    for record in (await node.listing()).admissions:
        await node.admission.Release(ad.ReleaseRequest(pod_uid=record.pod_uid))


async def _full(*_: object, **__: object) -> None:
    raise StateNotWritten("topology.db", "state file topology.db: database or disk is full")
