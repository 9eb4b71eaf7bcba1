"""Choosing ids: every step and text of DEV-29, and the split by affinity."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.device.device_world import bare, device, ids

from numalign.device.allocation import (
    Choice,
    Demand,
    PreferenceQuestion,
    Supply,
    choose,
    split_by_affinity,
)
from numalign.device.layout import layout_of
from numalign.model.ids import DeviceId, PodUid
from numalign.model.numa_mask import NumaMask, mask_of

DEVICES = (
    device("a", 0),
    device("b", 0),
    device("c", 1),
    device("d", 1),
    device("e", 0, 1),
    bare("x"),
)
LAYOUT = layout_of({d.id: d for d in DEVICES}, (0, 1))
ALL = "abcdex"


def supply(
    *,
    healthy: str | None = ALL,
    allocated: str = "",
    reusable: str = "",
    recorded: str | None = None,
    already_running: bool = False,
) -> Supply:
    return Supply(
        layout=LAYOUT,
        healthy=None if healthy is None else frozenset(ids(*healthy)),
        allocated=frozenset(ids(*allocated)),
        reusable=frozenset(ids(*reusable)),
        recorded=None if recorded is None else frozenset(ids(*recorded)),
        already_running=already_running,
    )


def drive(
    required: int, there_is: Supply, mask: NumaMask | None = None, preferred: str = ""
) -> tuple[PreferenceQuestion | None, Choice]:
    """The question asked, if any, and the outcome after `preferred` is answered."""
    choosing = choose(
        Demand(pod_uid=PodUid("u"), container="c", resource="r", required=required, mask=mask),
        there_is,
    )
    question = None
    try:
        question = next(choosing)
        choosing.send(ids(*preferred))
    except StopIteration as chosen:
        choice: Choice = chosen.value
        return question, choice
    raise AssertionError("a second question")


NOTHING = Choice()


@pytest.mark.parametrize(
    ("required", "there_is", "failure"),
    [
        pytest.param(
            3,
            supply(recorded="ab"),
            'pod "u" container "c" changed request for resource "r" from 2 to 3',
            id="changed-request",
        ),
        pytest.param(
            3,
            supply(recorded="ab", already_running=True),
            'pod "u" container "c" changed request for resource "r" from 2 to 3',
            id="changed-request-of-a-running-container",
        ),
        pytest.param(
            1, supply(healthy=None), "cannot allocate unregistered device r", id="unregistered"
        ),
        pytest.param(
            0,
            supply(healthy=""),
            "no healthy devices present; cannot allocate unhealthy devices r",
            id="nothing-healthy-even-for-zero",
        ),
        pytest.param(
            2,
            supply(healthy="bc", recorded="ab"),
            "previously allocated devices are no longer healthy; "
            "cannot allocate unhealthy devices r",
            id="recorded-device-unhealthy",
        ),
    ],
)
def test_refusals_before_anything_is_taken(required: int, there_is: Supply, failure: str) -> None:
    assert drive(required, there_is) == (None, Choice(failure=failure))


@pytest.mark.parametrize(
    ("required", "there_is"),
    [
        pytest.param(2, supply(recorded="ab", allocated="ab"), id="recorded-already"),
        pytest.param(0, supply(), id="zero"),
        pytest.param(2, supply(healthy=None, already_running=True), id="running-unregistered"),
        pytest.param(2, supply(healthy="", recorded="ab", already_running=True), id="running"),
    ],
)
def test_nothing_to_do(required: int, there_is: Supply) -> None:
    assert drive(required, there_is) == (None, NOTHING)


def test_reuse_alone_asks_nobody_and_takes_the_lowest_ids() -> None:
    assert drive(2, supply(reusable="dcb", allocated="bcd", healthy="a")) == (
        None,
        Choice(ids=ids("b", "c"), begun=True),
    )


def test_too_few_names_what_remains_after_reuse_and_keeps_it_taken() -> None:
    assert drive(4, supply(reusable="b", allocated="bcdex")) == (
        None,
        Choice(
            ids=ids("b"),
            begun=True,
            failure="requested number of devices unavailable for r. Requested: 3, Available: 1",
        ),
    )


def asks(available: str, must_include: str, size: int) -> PreferenceQuestion:
    return PreferenceQuestion(available=ids(*available), must_include=ids(*must_include), size=size)


@pytest.mark.parametrize(
    ("required", "there_is", "preferred", "question", "taken"),
    [
        pytest.param(1, supply(), "d", asks("cde", "", 1), "d", id="aligned-by-preference"),
        pytest.param(1, supply(), "", asks("cde", "", 1), "c", id="aligned-lowest"),
        pytest.param(1, supply(), "ab?", asks("cde", "", 1), "c", id="foreign-preference"),
        pytest.param(2, supply(), "edc", asks("cde", "", 2), "cd", id="preference-too-long"),
        pytest.param(3, supply(), "", None, "cde", id="exactly-the-aligned"),
        pytest.param(4, supply(), "x", asks(ALL, "cde", 4), "cdex", id="beyond-by-preference"),
        pytest.param(4, supply(), "", asks(ALL, "cde", 4), "acde", id="unaligned-first"),
        pytest.param(6, supply(), "", asks(ALL, "cde", 6), ALL, id="all"),
        pytest.param(
            3,
            supply(reusable="b", allocated="bd"),
            "x",
            None,
            "bce",
            id="reused-and-exactly-aligned",
        ),
        pytest.param(
            2,
            supply(reusable="b", allocated="b"),
            "bd",
            asks("bcde", "b", 2),
            "bd",
            id="size-is-all-that-is-required",
        ),
    ],
)
def test_taking_under_the_mask_of_node_1(
    required: int,
    there_is: Supply,
    preferred: str,
    question: PreferenceQuestion | None,
    taken: str,
) -> None:
    assert drive(required, there_is, mask_of([1]), preferred) == (
        question,
        Choice(ids=ids(*taken), begun=True),
    )


def test_without_a_mask_everything_is_asked_about() -> None:
    assert drive(2, supply(), None, "xe") == (
        asks(ALL, "", 2),
        Choice(ids=ids("e", "x"), begun=True),
    )


@pytest.mark.parametrize(
    ("nodes", "group"),
    [
        pytest.param(None, 2, id="no-topology"),
        pytest.param((), 2, id="no-nodes"),
        pytest.param((1,), 0, id="in-the-mask"),
        pytest.param((0,), 1, id="outside"),
        pytest.param((0, 1), 0, id="one-of-two"),
        pytest.param((-1,), 2, id="minus-one"),
        pytest.param((-1, 0), 1, id="minus-one-and-a-real-one"),
        pytest.param((-1, 1), 0, id="minus-one-and-the-right-one"),
        pytest.param((64,), 1, id="beyond-a-mask"),
    ],
)
def test_split(nodes: tuple[int, ...] | None, group: int) -> None:
    probe = device("probe", *nodes) if nodes is not None else bare("probe")
    layout = layout_of({d.id: d for d in (probe, device("other", 0))}, (0, 1))

    split = split_by_affinity(ids("probe"), layout, mask_of([1]))

    groups = [split.aligned, split.unaligned, split.no_affinity]
    assert [ids("probe")[0] in g for g in groups] == [i == group for i in range(3)]


letters = st.sets(st.sampled_from(ALL)).map(lambda chosen: "".join(sorted(chosen)))


@given(
    required=st.integers(0, 7),
    healthy=letters,
    allocated=letters,
    reused=letters,
    preferred=letters,
    mask=st.sampled_from([None, mask_of([0]), mask_of([1]), mask_of([0, 1])]),
)
def test_a_choice_is_complete_fresh_and_healthy(
    required: int,
    healthy: str,
    allocated: str,
    reused: str,
    preferred: str,
    mask: NumaMask | None,
) -> None:
    # What may be reused is allocated: the pod's own init containers hold it.
    there_is = supply(healthy=healthy, allocated=allocated + reused, reusable=reused)

    _, choice = drive(required, there_is, mask, preferred)

    taken: frozenset[DeviceId] = frozenset(choice.ids)
    fresh = taken - there_is.reusable
    assert there_is.healthy is not None
    assert fresh <= there_is.healthy - there_is.allocated
    if choice.failure is None:
        assert len(choice.ids) == len(taken) == required
        assert not fresh or there_is.reusable <= taken
        aligned = split_by_affinity(there_is.healthy - there_is.allocated, LAYOUT, mask).aligned
        assert not fresh - aligned or aligned <= taken
    else:
        assert required > len(there_is.reusable | (there_is.healthy - there_is.allocated)) or (
            not there_is.healthy
        )
