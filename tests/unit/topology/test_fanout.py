"""All providers of one admission at once: order, failures, and who may be left out."""

from __future__ import annotations

import asyncio

import pytest
from grpc import StatusCode
from tests.unit.topology.fake_provider import FakeProvider, handle_to
from tests.waiting import LONG, until

from numalign.model.hint import TopologyHint
from numalign.model.ids import AdmissionId, PodUid
from numalign.model.numa_mask import NumaMask
from numalign.model.pod import Container, Pod
from numalign.topology.fanout import Fanout
from numalign.topology.provider_handle import ProviderDown
from numalign.v1 import types_pb2 as pb

POD = Pod(uid=PodUid("u"), containers=(Container(name="c"),))
C = POD.containers[0]
NEAR = TopologyHint(NumaMask(1), True)


def fanout(*providers: FakeProvider, ignored: str = "", one_by_one: bool = False) -> Fanout:
    return Fanout(
        [
            handle_to(
                provider,
                failure_policy=(
                    pb.FAILURE_POLICY_IGNORE if provider.name == ignored else pb.FAILURE_POLICY_FAIL
                ),
            )
            for provider in providers
        ],
        AdmissionId("1"),
        b"pod",
        dry_run=False,
        one_by_one=one_by_one,
    )


async def test_answers_are_in_provider_order_however_long_they_take() -> None:
    first, second = FakeProvider("first"), FakeProvider("second")
    first.slow["GetTopologyHints"] = 0.02
    answers = await fanout(first, second).topology_hints(POD, C)
    assert [answer.provider for answer in answers] == ["first", "second"]
    assert answers[1].hints == {"example.com/second": (NEAR,)}


async def test_providers_are_asked_at_once() -> None:
    all_asked = asyncio.Barrier(3)

    class Meeting(FakeProvider):
        async def _take(self, *_: object) -> None:
            await all_asked.wait()

    made = fanout(*(Meeting(name) for name in ("a", "b", "c")))
    await asyncio.wait_for(made.topology_hints(POD, C), LONG)


async def test_what_containers_hold_comes_from_everybody() -> None:
    made = fanout(FakeProvider("a"), FakeProvider("b"))
    assert await made.allocate(POD, C, NEAR, True) is None
    (allocation,) = made.allocations(POD, {"c": NEAR})
    assert [device.resource for device in allocation.devices] == ["example.com/a", "example.com/b"]
    assert allocation.affinity.mask == 1
    assert [call.provider for call in made.allocate_calls] == ["a", "b"]


async def test_a_provider_that_fails_fails_the_admission_when_all_have_ended() -> None:
    broken, slow = FakeProvider("broken"), FakeProvider("slow")
    broken.broken["GetTopologyHints"] = StatusCode.UNAVAILABLE
    slow.slow["GetTopologyHints"] = 0.02
    made = fanout(broken, slow)
    with pytest.raises(ProviderDown, match="hint provider broken: UNAVAILABLE"):
        await made.topology_hints(POD, C)
    assert [handle.name for handle in made.handles] == ["broken", "slow"]


async def test_a_provider_that_may_be_ignored_is_named_and_left_out() -> None:
    extra, needed = FakeProvider("extra"), FakeProvider("needed")
    made = fanout(extra, needed, ignored="extra")
    await made.topology_hints(POD, C)
    extra.broken["Allocate"] = StatusCode.UNAVAILABLE
    assert await made.allocate(POD, C, NEAR, True) is None
    assert made.warnings == [
        "hint provider extra: UNAVAILABLE: Allocate is broken; it was left out of the decision"
    ]
    assert [handle.name for handle in made.handles] == ["needed"]
    assert [handle.name for handle in made.left_out] == ["extra"]
    (allocation,) = made.allocations(POD, {})
    assert [device.resource for device in allocation.devices] == ["example.com/needed"]


async def test_one_by_one_they_are_asked_in_order() -> None:
    order: list[str] = []
    providers = [FakeProvider(name) for name in ("a", "b")]
    for provider in providers:
        provider.asked = order
        provider.slow["Allocate"] = 0.01
    assert await fanout(*providers, one_by_one=True).allocate(POD, C, NEAR, True) is None
    assert order == ["Allocate", "Allocate"]


async def test_giving_up_gives_up_every_call() -> None:
    begun, ended = list[str](), list[str]()

    class Patient(FakeProvider):
        async def _take(self, *_: object) -> None:
            begun.append(self.name)
            try:
                await asyncio.sleep(LONG)
            except asyncio.CancelledError:
                ended.append(self.name)
                raise

    work = asyncio.ensure_future(fanout(Patient("a"), Patient("b")).topology_hints(POD, C))
    await until(lambda: len(begun) == 2)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await until(lambda: sorted(ended) == ["a", "b"])
