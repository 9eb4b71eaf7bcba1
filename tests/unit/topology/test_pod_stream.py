"""Which pods of a stream make a group, and when what was decided on them is told to hold."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import cast

import pytest

from numalign.errors import FieldViolation, InvalidInput, NumalignError, Unavailable
from numalign.model.ids import AdmissionId, PodUid
from numalign.model.pod import Pod
from numalign.topology import pod_stream as module
from numalign.topology.decision import AdmitCall, Decision, Judged
from numalign.topology.group import Group
from numalign.topology.pod_stream import AskedPod, PodEvent, PodStream
from numalign.topology.scope import ScopeResult
from numalign.topology.turnstile import Turnstile
from numalign.topology.wording import Explaining
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine ends no group."""
    monkeypatch.setattr(module, "PROMISED_SECONDS", 60.0)


ODD = InvalidInput(FieldViolation("metadata.uid", "Required value"))


class FakeGroup:
    """Admits every pod but those that it is told to fail on; writes down what it is asked."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.admission_id = AdmissionId(f"group-{len(world.groups)}")
        self.uids: list[str] = []

    def __contains__(self, uid: object) -> bool:
        return uid in self.uids

    async def add(self, call: AdmitCall) -> Judged:
        error = self.world.fails.get(call.pod.uid)
        if error is not None:
            raise error
        self.uids.append(call.pod.uid)
        response = ad.AdmitResponse(verdict=pb.VERDICT_ADMITTED)
        words = Explaining(lambda _: self.world.explained(call))
        return Judged(response, ScopeResult(admitted=True), words)

    async def keep(self) -> None:
        if self.world.cannot_keep is not None:
            raise self.world.cannot_keep
        self.world.done.append(("kept", *self.uids))

    async def lose(self) -> None:
        self.world.done.append(("lost", *self.uids))


class World:
    """What the stream is decided with. `alone` are the pods that go in no group."""

    def __init__(self) -> None:
        self.turnstile = Turnstile(8)
        self.groups: list[FakeGroup] = []
        self.alone: set[str] = set()
        self.fails: dict[str, NumalignError] = {}
        self.cannot_keep: NumalignError | None = None
        self.done: list[tuple[str, ...]] = []

    def explained(self, call: AdmitCall) -> pb.Explanation:
        return pb.Explanation(summary=f"why {call.pod.uid}")

    async def one(self, call: AdmitCall, waited: float) -> Decision:
        self.done.append(("alone", call.pod.uid))
        return Decision(response=ad.AdmitResponse(verdict=pb.VERDICT_ADMITTED), waited=waited)

    async def group(self, call: AdmitCall, group: Group | None) -> Group | None:
        if call.pod.uid in self.alone:
            return None
        if group is None:
            self.groups.append(FakeGroup(self))
            group = cast("Group", self.groups[-1])
        return group

    def stream(self) -> PodStream:
        return PodStream(self.turnstile, one=self.one, group=self.group)

    async def events(self, pods: Iterable[AskedPod]) -> list[PodEvent]:
        return [event async for event in self.stream().decide(_all(pods))]


async def _all(pods: Iterable[AskedPod]) -> AsyncIterator[AskedPod]:
    for each in pods:
        yield each


def asked(uid: str, *, more: bool = True) -> AskedPod:
    call = AdmitCall(
        data=b"",
        pod=Pod(uid=PodUid(uid)),
        owner="o",
        dry_run=False,
        explain=pb.EXPLAIN_LEVEL_NONE,
    )
    return AskedPod(call, more=more)


def told(events: Iterable[PodEvent]) -> str:
    """One letter for each pod decided on, capital if it has no decision; `|` and `!` settle."""
    text = ""
    for event in events:
        if event.decided is not None:
            call = event.decided.asked.call
            letter = "?" if isinstance(call, NumalignError) else call.pod.uid
            failed = isinstance(event.decided.outcome, NumalignError)
            text += letter.upper() if failed else letter
        if event.settled:
            text += "|" if event.lost is None else "!"
    return text


async def test_pods_that_follow_each_other_are_recorded_together() -> None:
    world = World()

    events = await world.events([asked("a"), asked("b"), asked("c", more=False), asked("d")])

    assert told(events) == "abc|d|"
    assert world.done == [("kept", "a", "b", "c"), ("kept", "d")]


async def test_each_pod_is_explained_before_it_is_told_of() -> None:
    world = World()

    events = await world.events([asked("a"), asked("b", more=False), asked("c", more=False)])

    outcomes = [event.decided.outcome for event in events if event.decided is not None]
    assert [o.response.explanation.summary for o in outcomes if isinstance(o, Decision)] == [
        "why a",
        "why b",
        "why c",
    ]


async def test_a_pod_that_was_promised_and_does_not_come_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PROMISED_SECONDS", 0.001)
    world, more = World(), asyncio.Event()

    async def pods() -> AsyncIterator[AskedPod]:
        yield asked("a")
        await more.wait()
        yield asked("b")

    events = []
    async for event in world.stream().decide(pods()):
        events.append(event)
        if told(events) == "a|":
            more.set()

    assert told(events) == "a|b|"


@pytest.mark.parametrize(("largest", "expected"), [(1, "a|b|c|"), (2, "ab|c|"), (3, "abc|")])
async def test_a_group_has_a_largest_size(
    monkeypatch: pytest.MonkeyPatch, largest: int, expected: str
) -> None:
    monkeypatch.setattr(module, "LARGEST", largest)

    assert told(await World().events([asked("a"), asked("b"), asked("c", more=False)])) == expected


async def test_a_group_ends_when_somebody_waits_for_a_turn() -> None:
    world = World()
    got: list[str] = []

    async def other() -> None:
        async with world.turnstile.turn():
            got.extend(uid for group in world.groups for uid in group.uids)

    async def group(call: AdmitCall, current: Group | None) -> Group | None:
        if call.pod.uid == "b":
            waiting.append(asyncio.ensure_future(other()))
            await asyncio.sleep(0)
        return await world.group(call, current)

    waiting: list[asyncio.Task[None]] = []
    stream = PodStream(world.turnstile, one=world.one, group=group)
    pods = [asked("a"), asked("b"), asked("c", more=False)]
    events = [event async for event in stream.decide(_all(pods))]
    await waiting[0]

    assert told(events) == "ab|c|"
    assert got == ["a", "b"]


async def test_a_pod_by_itself_comes_behind_what_is_recorded() -> None:
    world = World()
    world.alone = {"b"}

    events = await world.events([asked("a"), asked("b"), asked("c", more=False)])

    assert told(events) == "a|b|c|"
    assert world.done == [("kept", "a"), ("alone", "b"), ("kept", "c")]


async def test_what_is_wrong_with_one_pod_is_told_in_its_place() -> None:
    world = World()
    world.fails["b"] = ODD

    pods = [AskedPod(ODD, more=True), asked("a"), AskedPod(ODD, more=True), asked("b")]
    events = await world.events([*pods, asked("c", more=False)])

    assert told(events) == "?|a?Bc|"
    assert world.done == [("kept", "a", "c")]


async def test_what_is_lost_is_lost_for_all_pods_of_the_group() -> None:
    world = World()
    world.fails["b"] = Unavailable("hint provider cpu: gone")

    events = await world.events([asked("a"), asked("b"), asked("c", more=False)])

    assert told(events) == "aB!c|"
    assert world.done == [("kept", "c")]


async def test_a_group_that_cannot_be_recorded_is_lost() -> None:
    world = World()
    world.cannot_keep = Unavailable("disk full")

    assert told(await world.events([asked("a"), asked("b", more=False)])) == "ab!"


async def test_a_turn_that_is_not_to_be_had_is_told_for_each_pod() -> None:
    world = World()
    world.turnstile.depth = 0
    async with world.turnstile.turn():
        events = await world.events([asked("a"), asked("b", more=False)])

    assert told(events) == "A|B|"


async def test_who_goes_away_leaves_no_group_open() -> None:
    world = World()

    async def pods() -> AsyncIterator[AskedPod]:
        yield asked("a")
        yield asked("b")
        await asyncio.Event().wait()

    stream = world.stream().decide(pods())
    async for _ in stream:
        break
    await stream.aclose()

    assert world.done in ([("lost", "a")], [("lost", "a", "b")])
    async with world.turnstile.turn():
        pass


async def test_no_pods_are_no_events() -> None:
    assert await World().events([]) == []
