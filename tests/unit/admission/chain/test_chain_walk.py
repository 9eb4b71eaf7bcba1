"""The order of a chain, and when the Topology Manager is asked for keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.admission.handlers.admit_pods import pod

from numalign.admission.chain.built_in import Chain
from numalign.admission.chain.question import Answer, Handler, NodeFacts, Question, deciding
from numalign.admission.chain.walk import (
    Allocated,
    End,
    Outcome,
    Walk,
    allocate_in_place,
    allocate_last,
)
from numalign.admission.handlers.predicates import DeviceCounts
from numalign.admission.handlers.verdict import ADMITTED, Verdict, rejected

_HELD = DeviceCounts(allocated={"example.com/gpu": 1}, pod_holds_some=True)
_WAYS = [pytest.param(allocate_last, id="last"), pytest.param(allocate_in_place, id="in place")]


class Topology:
    """A Topology Manager that always decides the same, and notes what it was asked."""

    def __init__(self, end: End = End.ADMITTED) -> None:
        self._end = end
        self.calls: list[str] = []

    async def allocate(self, *, dry_run: bool) -> Allocated[str]:
        self.calls.append("dry run" if dry_run else "for keeps")
        return Allocated(end=self._end, response=self._end.value, devices=_HELD)


def _saying(name: str, answer: Answer | Verdict = ADMITTED) -> Handler:
    return deciding(name, lambda _: answer)


def _refusing(name: str) -> Handler:
    return _saying(name, rejected(name.upper(), f"{name} says no"))


def _naming(name: str) -> Handler:
    return _saying(name, Answer(ADMITTED, (pod("victim"),)))


_QUESTION = Question(pod=pod(), facts=NodeFacts(node=None))
_WANTS_A_DEVICE = Question(pod=pod(requests={"example.com/gpu": "1"}), facts=NodeFacts(node=None))


@pytest.mark.parametrize("walk", _WAYS)
async def test_nobody_refuses(walk: Walk[str]) -> None:
    """ADM-3; one call is enough."""
    topology = Topology()
    chain = Chain(before=(_saying("a"),), behind=(_saying("b"),), soft=(_saying("c"),))

    assert await walk(chain, _QUESTION, topology) == Outcome(end=End.ADMITTED, response="admitted")
    assert topology.calls == ["for keeps"]


@pytest.mark.parametrize("walk", _WAYS)
async def test_what_refuses_in_front_spares_the_call(walk: Walk[str]) -> None:
    """ADM-3."""
    topology = Topology()
    chain = Chain(before=(_refusing("a"), _refusing("b")))
    outcome = await walk(chain, _QUESTION, topology)

    assert (outcome.end, outcome.handler, outcome.verdict.reason) == (End.REJECTED, "a", "A")
    assert topology.calls == []


@pytest.mark.parametrize(
    ("walk", "calls"),
    [
        pytest.param(allocate_last, ["dry run"], id="last"),
        pytest.param(allocate_in_place, ["for keeps"], id="in place: TOPO-8"),
    ],
)
async def test_nothing_is_kept_where_a_later_handler_refuses(
    walk: Walk[str], calls: list[str]
) -> None:
    topology = Topology()
    outcome = await walk(Chain(behind=(_saying("b"), _refusing("c"))), _QUESTION, topology)

    assert (outcome.end, outcome.handler) == (End.REJECTED, "c")
    assert topology.calls == calls


@pytest.mark.parametrize("end", [End.REJECTED, End.DEFERRED])
@pytest.mark.parametrize("walk", _WAYS)
@pytest.mark.parametrize(
    "behind",
    [
        pytest.param((_refusing("b"),), id="others refuse, too"),
        pytest.param((_naming("b"),), id="victims"),
        pytest.param((), id="others admit"),
    ],
)
async def test_the_topology_manager_comes_before_those_behind_it(
    behind: tuple[Handler, ...], walk: Walk[str], end: End
) -> None:
    """ADM-3: its reason is the one that is told."""
    outcome = await walk(Chain(behind=behind), _QUESTION, Topology(end))

    assert outcome == Outcome(end=end, handler="topology-manager", response=end.value)


@pytest.mark.parametrize(
    ("walk", "calls"),
    [
        pytest.param(allocate_last, ["dry run"], id="last"),
        pytest.param(allocate_in_place, ["for keeps"], id="in place"),
    ],
)
async def test_victims_defer_the_pod(walk: Walk[str], calls: list[str]) -> None:
    """DES-5."""
    topology = Topology()
    outcome = await walk(Chain(behind=(_naming("b"), _saying("c"))), _QUESTION, topology)

    assert (outcome.end, outcome.handler) == (End.DEFERRED, "b")
    assert [victim.pod.name for victim in outcome.victims] == ["victim"]
    assert topology.calls == calls


@pytest.mark.parametrize(
    ("walk", "end"),
    [
        pytest.param(allocate_last, End.REJECTED, id="last"),
        pytest.param(allocate_in_place, End.DEFERRED, id="in place: killed in vain, trap 29"),
    ],
)
async def test_no_pod_ends_in_vain(walk: Walk[str], end: End) -> None:
    outcome = await walk(Chain(behind=(_naming("b"), _refusing("c"))), _QUESTION, Topology())

    assert outcome.end is end
    assert bool(outcome.victims) is (end is End.DEFERRED)


@pytest.mark.parametrize("walk", _WAYS)
async def test_a_soft_handler_makes_the_pod_wait(walk: Walk[str]) -> None:
    """ARM-7: hard refusals come first."""
    soft = (_refusing("s"),)
    waiting = await walk(Chain(soft=soft), _QUESTION, Topology())
    refused = await walk(Chain(behind=(_refusing("b"),), soft=soft), _QUESTION, Topology())

    assert (waiting.end, waiting.handler, waiting.verdict.message) == (
        End.DEFERRED,
        "s",
        "s says no",
    )
    assert (refused.end, refused.handler) == (End.REJECTED, "b")


@pytest.mark.parametrize(
    ("walk", "calls"),
    [
        pytest.param(allocate_last, ["dry run", "for keeps"], id="last"),
        pytest.param(allocate_in_place, ["for keeps"], id="in place"),
    ],
)
async def test_the_fit_sees_the_devices_that_the_pod_gets(
    walk: Walk[str], calls: list[str]
) -> None:
    """PRED-4, trap 18."""
    seen: list[DeviceCounts] = []

    def look(question: Question) -> Verdict:
        seen.append(question.devices)
        return ADMITTED

    topology = Topology()
    outcome = await walk(Chain(behind=(deciding("b", look),)), _WANTS_A_DEVICE, topology)

    assert outcome.end is End.ADMITTED
    assert seen == [_HELD]
    assert topology.calls == calls


@pytest.mark.parametrize("walk", _WAYS)
async def test_nobody_behind_is_asked_about_a_device_that_is_not_there(walk: Walk[str]) -> None:
    """ADM-3: the Topology Manager refuses first."""
    asked: list[str] = []

    def note() -> Callable[[Question], Verdict]:
        def decide(_: Question) -> Verdict:
            asked.append("b")
            return ADMITTED

        return decide

    outcome = await walk(
        Chain(behind=(deciding("b", note()),)), _WANTS_A_DEVICE, Topology(End.REJECTED)
    )

    assert outcome.handler == "topology-manager"
    assert asked == []


_REFUSALS = st.lists(st.booleans(), max_size=3)


@settings(deadline=None)
@given(_REFUSALS, _REFUSALS, _REFUSALS, st.sampled_from(End))
def test_both_ways_tell_the_same_reason(
    before: list[bool], behind: list[bool], soft: list[bool], end: End
) -> None:
    """ADM-3: without victims only what is kept differs."""

    def part(name: str, refusals: list[bool]) -> tuple[Handler, ...]:
        return tuple(
            (_refusing if refuses else _saying)(f"{name}{i}") for i, refuses in enumerate(refusals)
        )

    chain = Chain(before=part("x", before), behind=part("y", behind), soft=part("z", soft))
    last, in_place = Topology(end), Topology(end)
    told = asyncio.run(allocate_last(chain, _QUESTION, last))

    assert told == asyncio.run(allocate_in_place(chain, _QUESTION, in_place))
    assert ("for keeps" in last.calls) is not any((*before, *behind, *soft))
