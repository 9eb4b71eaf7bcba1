"""One provider: which process it is, whether it answers, and when outcomes reach it."""

from __future__ import annotations

import asyncio

import pytest
from grpc import StatusCode
from tests.unit.topology.fake_provider import FakeProvider, handle_to
from tests.waiting import until

from numalign.errors import InvalidInput
from numalign.rpc.deadline import current_deadline
from numalign.topology.provider_handle import ProviderDown, ProviderHandle
from numalign.v1 import hint_provider_pb2 as hp


async def hints(handle: ProviderHandle) -> hp.GetTopologyHintsResponse:
    return await handle.decide(
        lambda: handle.stub.GetTopologyHints(hp.GetTopologyHintsRequest(), timeout=handle.timeout)
    )


def commit(handle: ProviderHandle) -> None:
    request = hp.CommitRequest(admission_id="1")
    handle.deliver_later(lambda: handle.stub.Commit(request, timeout=handle.timeout))


async def test_the_same_process_answers() -> None:
    handle = handle_to(FakeProvider("p"))
    assert (await hints(handle)).instance_id == "p-1"
    assert handle.status() == ("p-1", "")


async def test_another_process_knows_nothing_of_the_admission() -> None:
    provider = FakeProvider("p")
    handle = handle_to(provider)
    provider.restart()
    with pytest.raises(ProviderDown, match="hint provider p: restarted during the admission"):
        await hints(handle)
    assert handle.instance_id == ""


@pytest.mark.parametrize(
    ("code", "error"),
    [
        pytest.param(StatusCode.UNAVAILABLE, ProviderDown, id="down"),
        pytest.param(StatusCode.INTERNAL, ProviderDown, id="fault"),
        pytest.param(StatusCode.INVALID_ARGUMENT, InvalidInput, id="request-is-wrong"),
    ],
)
async def test_a_call_that_fails(code: StatusCode, error: type[Exception]) -> None:
    provider = FakeProvider("p")
    handle = handle_to(provider)
    provider.broken["GetTopologyHints"] = code
    with pytest.raises(error, match="GetTopologyHints is broken"):
        await hints(handle)
    # Who finds a request wrong is alive and knows the picture.
    assert bool(handle.instance_id) == (code is StatusCode.INVALID_ARGUMENT)
    assert handle.last_error == f"{code.name}: GetTopologyHints is broken"


async def test_a_call_that_takes_too_long() -> None:
    provider = FakeProvider("p")
    handle = handle_to(provider, timeout=0.01)
    provider.slow["GetTopologyHints"] = 1
    with pytest.raises(ProviderDown, match="DEADLINE_EXCEEDED"):
        await hints(handle)


async def test_an_introduction_hands_over_the_picture() -> None:
    provider = FakeProvider("p")
    handle = handle_to(provider, introduced=False)
    await handle.introduce(hp.HintProviderReconcileRequest(committed_admission_ids=["7"]))
    assert provider.asked == ["GetInfo", "Reconcile"]
    assert provider.requests[1].committed_admission_ids == ["7"]
    assert (handle.instance_id, handle.resources) == ("p-1", ("example.com/p",))


async def test_a_restart_during_the_introduction_is_noticed() -> None:
    provider = FakeProvider("p")
    handle = handle_to(provider, introduced=False)
    provider.slow["Reconcile"] = 0.02
    introduction = asyncio.ensure_future(handle.introduce(hp.HintProviderReconcileRequest()))
    while "Reconcile" not in provider.asked:  # noqa: ASYNC110 - no event says it
        await asyncio.sleep(0)
    provider.restart()
    with pytest.raises(ProviderDown, match="restarted while it was told the picture"):
        await introduction
    assert handle.instance_id == ""


async def test_an_outcome_stands_back_behind_the_answer() -> None:
    provider = FakeProvider("p")
    handle = handle_to(provider)
    commit(handle)
    await asyncio.sleep(0)
    assert provider.asked == []
    await until(lambda: provider.asked == ["Commit"])


async def test_an_outcome_goes_out_when_somebody_waits_for_it_and_only_once() -> None:
    provider = FakeProvider("p")
    handle = handle_to(provider)
    commit(handle)
    await handle.delivered()
    assert provider.asked == ["Commit"]
    await asyncio.sleep(0.05)
    await handle.delivered()
    assert provider.asked == ["Commit"]


async def test_an_outcome_has_more_time_than_the_call_it_follows() -> None:
    provider = FakeProvider("p")
    handle = handle_to(provider)
    token = current_deadline.set(asyncio.get_running_loop().time() - 1)
    try:
        commit(handle)
        await handle.delivered()
    finally:
        current_deadline.reset(token)
    assert provider.asked == ["Commit"]
    assert handle.instance_id == "p-1"


async def test_an_outcome_that_is_lost_means_a_new_introduction() -> None:
    provider = FakeProvider("p")
    handle = handle_to(provider)
    provider.broken["Commit"] = StatusCode.UNAVAILABLE
    commit(handle)
    await handle.delivered()
    assert handle.instance_id == ""
