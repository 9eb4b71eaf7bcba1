"""Streams of pods between processes: callers that do not read, deaths, limits and deadlines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import pytest
from grpc import StatusCode, aio
from tests.integration.agents import CUT_OFF
from tests.integration.books import held_by
from tests.integration.node_document import pod
from tests.integration.streamed_pods import ADMITTED, small, stream, verdicts
from tests.integration.world import World, open_world

from numalign.kube.core.v1 import core_pb2
from numalign.rpc.channel import MESSAGE_BYTES
from numalign.v1 import admission_pb2 as ad


@pytest.fixture(name="world")
async def world_fixture() -> AsyncIterator[World]:
    async with open_world(together=False, seed=1) as world:
        yield world


@pytest.mark.processes
async def test_a_caller_that_does_not_read_is_waited_for_and_nobody_waits_for_it(
    world: World,
) -> None:
    sent = 0

    async def requests() -> AsyncIterator[ad.AdmitPodsRequest]:
        nonlocal sent
        for number in range(250):
            made = small(f"slow-{number}")
            made.metadata.annotations["padding"] = "x" * 20_000
            sent += 1
            yield ad.AdmitPodsRequest(admit=ad.AdmitRequest(pod=made, owner="slow"))

    call = world.admission.AdmitPods(requests(), timeout=60)
    answers = aiter(call)
    first = await anext(answers)
    other = await world.admission.Admit(
        ad.AdmitRequest(pod=small("beside"), owner="slow"), timeout=60
    )
    rest = [answer async for answer in answers]

    assert other.verdict == ADMITTED
    assert verdicts([first, *rest]) == [ADMITTED] * 250
    assert sent == 250
    await release_owner(world, "slow")
    assert await world.judge() == []


@pytest.mark.processes
async def test_what_is_too_large_to_be_handed_on_leaves_the_others_alone(world: World) -> None:
    """Either is as large as a message to Admission may be, and the next one says more."""

    def padded(text: str) -> ad.AdmitRequest:
        request = ad.AdmitRequest(pod=small("padded"))
        request.pod.metadata.annotations["padding"] = text
        return request

    def owned(owner: str) -> ad.AdmitRequest:
        return ad.AdmitRequest(pod=small("owned"), owner=owner)

    requests: list[ad.AdmitRequest | core_pb2.Pod]
    requests = [small("a"), filled(padded), filled(owned), small("b")]

    answers = await stream(world.admission, requests)

    refused, too_large = StatusCode.INVALID_ARGUMENT, StatusCode.RESOURCE_EXHAUSTED
    assert verdicts(answers) == [ADMITTED, -refused.value[0], -too_large.value[0], ADMITTED]
    for uid in ("a", "b"):
        await world.admission.Release(ad.ReleaseRequest(pod_uid=uid))
    assert await world.judge() == []


@pytest.mark.processes
@pytest.mark.parametrize(
    ("process", "place"),
    [
        ("cpu", "hints.answered"),
        ("device", "seal.done"),
        ("memory", "prepare.in-transaction"),
        ("cpu", "prepare.written"),
        ("topology", "row.in-transaction"),
        ("topology", "row.written"),
        ("admission", ""),
    ],
)
async def test_whoever_dies_in_the_middle_every_pod_is_whole_or_not_there(
    world: World, process: str, place: str
) -> None:
    pods = [pod(f"p{n}", cpu=1, memory="1Mi", gpus=n % 2) for n in range(6)]
    call = world.admission.AdmitPods(
        iter([ad.AdmitPodsRequest(admit=ad.AdmitRequest(pod=p, owner="o")) for p in pods]),
        timeout=60,
    )
    if place:
        world.kill_when(process, place, 1)
    else:
        world.kill(process)
    answers: list[ad.AdmitPodsResponse] = []
    with suppress(aio.AioRpcError):
        async for answer in call:
            answers.append(answer)  # noqa: PERF401 - those before an error count
    code, details = await call.code(), await call.details()
    assert code in {StatusCode.OK, StatusCode.UNAVAILABLE} or details == CUT_OFF
    await world._dead(process)
    await world.restart(process)
    await world.ready()

    listing = await world.admission.ListAdmissions(ad.ListAdmissionsRequest(owner="o"))
    recorded = {each.pod_uid: each for each in listing.admissions}
    for answer in answers:
        if answer.HasField("decision"):
            held = held_by(answer.decision.allocations)
            assert held == held_by(recorded[answer.pod_uid].allocations)
        else:
            assert answer.error.code == StatusCode.UNAVAILABLE.value[0]
    assert await world.judge() == []
    again = await stream(world.admission, [ad.AdmitRequest(pod=p, owner="o") for p in pods])
    assert verdicts(again) == [ADMITTED] * 6
    await release_owner(world, "o")
    assert await world.judge() == []


@pytest.mark.processes
async def test_the_deadline_of_a_stream_is_kept_and_what_it_cut_off_can_be_asked_for_again(
    world: World,
) -> None:
    pods = [ad.AdmitRequest(pod=small(f"t{n}"), owner="o") for n in range(60)]
    while True:
        try:
            await stream(world.admission, pods, within=0.02)
        except aio.AioRpcError as error:
            code, details = error.code(), error.details()
            break
        # This test was held up for longer than the services took.
        await release_owner(world, "o")

    assert code == StatusCode.DEADLINE_EXCEEDED or details == CUT_OFF
    assert verdicts(await stream(world.admission, pods)) == [ADMITTED] * 60
    await release_owner(world, "o")
    assert await world.judge() == []


def filled(make: Callable[[str], ad.AdmitRequest]) -> ad.AdmitRequest:
    """The request with the longest text that a message of a stream can have."""
    size = ad.AdmitPodsRequest(admit=make("x" * MESSAGE_BYTES)).ByteSize()
    return make("x" * (MESSAGE_BYTES - (size - MESSAGE_BYTES)))


async def release_owner(world: World, owner: str) -> None:
    """Release what an owner has."""
    listing = await world.admission.ListAdmissions(ad.ListAdmissionsRequest())
    await world.admission.Reconcile(
        ad.ReconcileRequest(owner=owner, as_of_revision=listing.revision, sources_ready=True)
    )
