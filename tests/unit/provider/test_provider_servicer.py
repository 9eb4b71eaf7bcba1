"""The HintProvider service over a ledger: what calls say of it, inside one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode, aio
from tests.integration.node_document import pod
from tests.unit.provider.ledger_world import HINT, State, ledger_in
from tests.waiting import until

from numalign.model.cpu_set import CpuSet
from numalign.provider.audience import SilentObserver
from numalign.provider.hint_messages import hint_to_message, hints_from_message
from numalign.provider.ledger import Ledger
from numalign.provider.pod_cache import PodCache
from numalign.provider.servicer import HintProviderServicer
from numalign.rpc.local import LocalChannel, LocalServer
from numalign.rpc.methods import Registration
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import hint_provider_pb2_grpc as hp_grpc

POD = pod("a").SerializeToString()


class ListBooks:
    """The books of a list of pods."""

    def state_message(self, state: State) -> hp.GetStateResponse:
        return hp.GetStateResponse(
            cpu=hp.CpuState(
                assignments=[hp.CpuAssignment(pod_uid=uid, container="c") for uid in state]
            )
        )

    def allocatable_message(
        self,
        state: State,  # noqa: ARG002 - the same in every state
    ) -> hp.GetAllocatableResourcesResponse:
        return hp.GetAllocatableResourcesResponse(cpus=str(CpuSet.of(range(8))))

    def unhealthy_message(self, state: State) -> None:
        """Nothing: these are no devices."""


class Served:
    """A ledger behind a stub."""

    def __init__(self, ledger: Ledger[State]) -> None:
        self.ledger = ledger
        servicer = HintProviderServicer(ledger, ListBooks(), SilentObserver(), PodCache())
        server = LocalServer()
        server.add([Registration(hp_grpc.add_HintProviderServicer_to_server, servicer)])
        self.stub: hp_grpc.HintProviderAsyncStub = hp_grpc.HintProviderStub(LocalChannel(server))

    async def allocate(
        self, *, last: bool = True, dry_run: bool = False, allocations_when_last: bool = False
    ) -> hp.AllocateResponse:
        return await self.stub.Allocate(
            hp.AllocateRequest(
                admission_id="1",
                pod=POD,
                container="c",
                affinity=hint_to_message(HINT),
                last=last,
                dry_run=dry_run,
                allocations_when_last=allocations_when_last,
            )
        )

    async def holders(self) -> list[str]:
        state = await self.stub.GetState(hp.GetStateRequest())
        return [assignment.pod_uid for assignment in state.cpu.assignments]


@pytest.fixture(name="served")
async def served_fixture(tmp_path: Path) -> AsyncIterator[Served]:
    async with ledger_in(tmp_path) as (ledger, _):
        yield Served(ledger)


async def test_every_answer_names_the_process(served: Served) -> None:
    info = await served.stub.GetInfo(hp.GetInfoRequest())
    assert (info.name, list(info.resources)) == ("list", ["thing"])
    hints = await served.stub.GetTopologyHints(
        hp.GetTopologyHintsRequest(admission_id="1", pod=POD, container="c")
    )
    assert hints_from_message(hints.hints) == {"thing": (HINT,)}
    answers: list[Any] = [hints, await served.allocate()]
    answers.append(await served.stub.Commit(hp.CommitRequest(admission_id="1")))
    answers.append(await served.stub.Abort(hp.AbortRequest(admission_id="2")))
    answers.append(await served.stub.Release(hp.HintProviderReleaseRequest(pod_uids=["a"])))
    answers.append(await served.stub.Reconcile(hp.HintProviderReconcileRequest()))
    answers.append(await served.stub.GetState(hp.GetStateRequest()))
    assert {answer.instance_id for answer in answers} == {info.instance_id}
    assert info.instance_id != ""


async def test_an_allocation_says_what_containers_hold(served: Served) -> None:
    answer = await served.allocate()
    assert [(a.container, a.cpus) for a in answer.allocations] == [("c", "1")]
    assert not answer.HasField("failure")
    assert await served.holders() == ["a"]
    await served.stub.Abort(hp.AbortRequest(admission_id="1", leftovers=hp.LEFTOVERS_DROP))
    assert await served.holders() == []


@pytest.mark.parametrize(
    ("last", "when_last", "told"),
    [
        pytest.param(False, False, ["c"], id="always"),
        pytest.param(False, True, [], id="more-follow"),
        pytest.param(True, True, ["c"], id="the-last"),
    ],
)
async def test_what_the_pod_holds_is_told_as_often_as_it_is_read(
    served: Served, last: bool, when_last: bool, told: list[str]
) -> None:
    answer = await served.allocate(last=last, allocations_when_last=when_last)
    assert [a.container for a in answer.allocations] == told


async def test_leftovers_can_be_kept(served: Served) -> None:
    await served.allocate(last=False)
    assert await served.holders() == []
    await served.stub.Abort(hp.AbortRequest(admission_id="1", leftovers=hp.LEFTOVERS_KEEP))
    assert await served.holders() == ["a"]


async def test_a_dry_run_keeps_nothing(served: Served) -> None:
    answer = await served.allocate(dry_run=True)
    assert [a.cpus for a in answer.allocations] == ["1"]
    await served.stub.Commit(hp.CommitRequest(admission_id="1"))
    assert await served.holders() == []


@pytest.mark.parametrize(
    ("data", "container", "text"),
    [
        pytest.param(POD, "nobody", 'has no container "nobody"', id="container"),
        pytest.param(b"\xff", "c", "", id="no-pod"),
    ],
)
async def test_a_request_that_is_wrong(
    served: Served, data: bytes, container: str, text: str
) -> None:
    with pytest.raises(aio.AioRpcError) as wrong:
        await served.stub.GetTopologyHints(
            hp.GetTopologyHintsRequest(admission_id="1", pod=data, container=container)
        )
    assert wrong.value.code() == StatusCode.INVALID_ARGUMENT
    assert text in str(wrong.value.details())


async def test_a_watch_tells_of_outcomes_and_not_of_tries(served: Served) -> None:
    shared: list[str] = []

    async def listen() -> None:
        async for event in served.stub.Watch(hp.WatchRequest()):
            shared.append(event.shared_cpus)  # noqa: PERF401 - each is looked at as it comes

    listener = asyncio.ensure_future(listen())
    await until(lambda: shared == ["0-7"])
    await served.allocate()
    await served.stub.Commit(hp.CommitRequest(admission_id="1"))
    await until(lambda: len(shared) == 2)
    assert shared == ["0-7", "1-7"]
    listener.cancel()
    await asyncio.gather(listener, return_exceptions=True)
