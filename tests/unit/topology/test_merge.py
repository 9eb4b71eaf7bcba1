"""The closed form of the merge against the enumeration it stands for, and the worked traps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.model.hint import HintList, ProviderHints, TopologyHint
from numalign.model.numa_mask import NumaMask, is_narrower, mask_of
from numalign.topology.merge import merge
from numalign.topology.normalise import normalise
from numalign.topology.numa_info import NumaInfo, narrowest
from numalign.topology.policy import Policy, Verdict
from numalign.topology.policy_best_effort import BestEffortPolicy
from numalign.topology.policy_restricted import RestrictedPolicy
from numalign.topology.policy_single_numa_node import SingleNumaNodePolicy

Lists = Sequence[Sequence[TopologyHint]]
Pair = Callable[[NumaMask, NumaMask], NumaMask]


def enumerate_merge(lists: Lists, default_mask: NumaMask, fitter: Pair) -> TopologyHint:
    """TM-21..TM-25 word by word."""
    wanted = best_non_preferred_count(lists)
    best: TopologyHint | None = None
    for combination in product(*lists):
        candidate = combined(combination, default_mask)
        if candidate.mask == 0:
            continue
        if best is None or replaces(candidate, best, wanted, fitter):
            best = candidate
    return best or TopologyHint(default_mask, False)


def best_non_preferred_count(lists: Lists) -> int:
    counts = [
        min(hint.mask.bit_count() for hint in hints if hint.mask is not None)
        for hints in lists
        if any(hint.mask is not None for hint in hints)
    ]
    return max(counts, default=0)


def combined(combination: Sequence[TopologyHint], default_mask: NumaMask) -> TopologyHint:
    masks = [hint.mask for hint in combination if hint.mask is not None]
    merged = default_mask
    for mask in masks:
        merged = NumaMask(merged & mask)
    preferred = all(hint.preferred for hint in combination) and len(set(masks)) <= 1
    return TopologyHint(merged, preferred)


def replaces(candidate: TopologyHint, best: TopologyHint, wanted: int, fitter: Pair) -> bool:
    assert candidate.mask is not None
    assert best.mask is not None
    if candidate.preferred != best.preferred:
        return candidate.preferred
    fits_better = candidate.mask != best.mask and (
        fitter(candidate.mask, best.mask) == candidate.mask
    )
    if candidate.preferred:
        return fits_better
    of_best, of_candidate = best.mask.bit_count(), candidate.mask.bit_count()
    if of_best > wanted:
        return fits_better
    if of_best == wanted:
        return of_candidate == wanted and fits_better
    if of_candidate > wanted:
        return False
    if of_candidate == wanted or of_candidate > of_best:
        return True
    return of_candidate == of_best and fits_better


def pairwise(info: NumaInfo, closest: bool) -> Pair:
    """TM-11 for two different masks."""

    def narrower(a: NumaMask, b: NumaMask) -> NumaMask:
        return a if is_narrower(a, b) else b

    def closer(a: NumaMask, b: NumaMask) -> NumaMask:
        if a.bit_count() != b.bit_count():
            return narrower(a, b)
        distance_a, distance_b = info.average_distance(a), info.average_distance(b)
        if distance_a == distance_b:
            return min(a, b)
        return a if distance_a < distance_b else b

    return closer if closest else narrower


@st.composite
def machines(draw: st.DrawFn) -> NumaInfo:
    nodes = tuple(draw(st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True)))
    row = st.tuples(*[st.sampled_from((10, 11, 20))] * 6)
    return NumaInfo(
        nodes=nodes,
        default_mask=mask_of(nodes),
        distances={node: draw(row) for node in nodes},
    )


HINT = st.builds(
    TopologyHint,
    st.none() | st.integers(0, 63).map(NumaMask),  # nodes 0..5, some outside the machine
    st.booleans(),
)
LISTS = st.lists(st.lists(HINT, max_size=5), max_size=4)
RESOURCES = st.dictionaries(
    st.sampled_from("abc"), st.none() | st.lists(HINT, max_size=4).map(tuple), max_size=3
)
ANSWERS = st.lists(st.none() | RESOURCES, max_size=2)


def listed(answers: list[ProviderHints]) -> list[tuple[TopologyHint, ...]]:
    """The normalised lists, none of which is described instead of listed."""
    lists = [hints for hints in normalise(answers) if isinstance(hints, tuple)]
    assert len(lists) == len(normalise(answers))
    return lists


@settings(max_examples=600, deadline=None)
@given(machines(), LISTS, st.booleans())
def test_closed_form_is_the_enumeration(info: NumaInfo, lists: Lists, closest: bool) -> None:
    expected = enumerate_merge(lists, info.default_mask, pairwise(info, closest))

    assert merge(lists, info.default_mask, info.closest if closest else narrowest) == expected


@settings(max_examples=300, deadline=None)
@given(machines(), ANSWERS, st.booleans())
def test_policies_admit_what_the_enumeration_prefers(
    info: NumaInfo, answers: list[ProviderHints], closest: bool
) -> None:
    lists = listed(answers)
    expected = enumerate_merge(lists, info.default_mask, pairwise(info, closest))
    fitter = info.closest if closest else narrowest

    assert BestEffortPolicy(info, fitter).decide(answers) == Verdict(expected, True)
    assert RestrictedPolicy(info, fitter).decide(answers) == Verdict(expected, expected.preferred)


@settings(max_examples=300, deadline=None)
@given(machines(), ANSWERS)
def test_single_numa_node_merges_what_is_left_of_the_lists(
    info: NumaInfo, answers: list[ProviderHints]
) -> None:
    lists = [
        [h for h in hints if h.preferred and (h.mask is None or h.mask.bit_count() == 1)]
        for hints in listed(answers)
    ]
    merged = enumerate_merge(lists, info.default_mask, pairwise(info, closest=False))
    best = merged
    if merged.mask == info.default_mask:
        best = TopologyHint(None, merged.preferred)

    assert SingleNumaNodePolicy(info).decide(answers) == Verdict(best, merged.preferred)


@settings(max_examples=300, deadline=None)
@given(machines(), LISTS, st.booleans(), st.randoms())
def test_no_order_matters(
    info: NumaInfo, lists: list[list[TopologyHint]], closest: bool, random: Random
) -> None:
    fitter = info.closest if closest else narrowest
    expected = merge(lists, info.default_mask, fitter)
    shuffled = [list(hints) for hints in lists]
    for hint_list in shuffled:
        random.shuffle(hint_list)
    random.shuffle(shuffled)

    assert merge(shuffled, info.default_mask, fitter) == expected


def hints(text: str) -> HintList:
    """Read `01 p, 10 n, - p`: masks in binary, `-` without affinity."""
    parsed = []
    for part in text.split(", "):
        mask, preferred = part.split()
        parsed.append(
            TopologyHint(None if mask == "-" else NumaMask(int(mask, 2)), preferred == "p")
        )
    return tuple(parsed)


def info_of(count: int, distances: Mapping[int, tuple[int, ...]] | None = None) -> NumaInfo:
    nodes = tuple(range(count))
    return NumaInfo(nodes=nodes, default_mask=mask_of(nodes), distances=distances or {})


def best_effort(info: NumaInfo) -> Policy:
    return BestEffortPolicy(info, narrowest)


def closest_best_effort(info: NumaInfo) -> Policy:
    return BestEffortPolicy(info, info.closest)


def restricted(info: NumaInfo) -> Policy:
    return RestrictedPolicy(info, narrowest)


CPU_2 = {"cpu": hints("01 p, 10 p, 11 n")}
UNEQUAL = [{"cpu": hints("01 p")}, {"dev": hints("11 p")}]
NOWHERE: list[ProviderHints] = [CPU_2, {"dev": ()}]
WIDE = [
    {"cpu": hints("0011 p, 1100 p")},
    {"dev": hints("0001 p, 0010 p, 0100 p, 1000 p, 0011 n")},
]
NARROW = [WIDE[0], {"dev": hints("0001 p, 0010 p, 0100 p, 1000 p")}]
AROUND_B = [{"a": hints("0001 n, 0111 n")}, {"b": hints("0111 n, 1001 n")}]
DISTANCES = {0: (10, 11, 20, 20), 1: (11, 10, 20, 20), 2: (20, 20, 10, 12), 3: (20, 20, 12, 10)}
FAR_OR_NEAR = [{"cpu": hints("0101 p, 1100 p")}]
OUTSIDE = [{"a": hints("111 p")}, {"b": hints("111 p")}]
OUTSIDE_UNEQUAL = [{"a": hints("111 p")}, {"b": hints("011 p")}]


@pytest.mark.parametrize(
    ("make", "info", "answers", "expected"),
    [
        pytest.param(best_effort, info_of(2), UNEQUAL, ("01", False, True), id="1-best-effort"),
        pytest.param(restricted, info_of(2), UNEQUAL, ("01", False, False), id="1-restricted"),
        pytest.param(SingleNumaNodePolicy, info_of(2), UNEQUAL, ("-", False, False), id="1-single"),
        pytest.param(restricted, info_of(2), [CPU_2, None], ("01", True, True), id="2-no-mapping"),
        pytest.param(restricted, info_of(2), [CPU_2, {}], ("01", True, True), id="2-empty-mapping"),
        pytest.param(
            restricted, info_of(2), [CPU_2, {"dev": None}], ("01", True, True), id="2-nil-list"
        ),
        pytest.param(
            restricted, info_of(2), NOWHERE, ("01", False, False), id="2-empty-list-restricted"
        ),
        pytest.param(
            best_effort, info_of(2), NOWHERE, ("01", False, True), id="2-empty-list-best-effort"
        ),
        pytest.param(best_effort, info_of(4), WIDE, ("0011", False, True), id="3-wider-wins"),
        pytest.param(best_effort, info_of(4), NARROW, ("0001", False, True), id="3-below-b"),
        pytest.param(
            best_effort, info_of(4), AROUND_B, ("0001", False, True), id="4-below-beats-above"
        ),
        pytest.param(
            restricted,
            info_of(4),
            [{"cpu": hints("1001 p, 0110 p")}],
            ("0110", True, True),
            id="5-integer-order",
        ),
        pytest.param(
            best_effort,
            info_of(4, DISTANCES),
            FAR_OR_NEAR,
            ("0101", True, True),
            id="6-narrowest",
        ),
        pytest.param(
            closest_best_effort,
            info_of(4, DISTANCES),
            FAR_OR_NEAR,
            ("1100", True, True),
            id="6-closest",
        ),
        pytest.param(
            closest_best_effort,
            info_of(4, DISTANCES),
            [{"cpu": hints("1100 p, 0010 p")}],
            ("0010", True, True),
            id="6-count-first",
        ),
        pytest.param(
            SingleNumaNodePolicy,
            info_of(1),
            [{"cpu": hints("1 p")}],
            ("-", True, True),
            id="7-default-mask-becomes-nil",
        ),
        pytest.param(
            SingleNumaNodePolicy,
            info_of(2),
            [CPU_2, {"dev": hints("- n")}],
            ("-", False, False),
            id="8-nil-not-preferred",
        ),
        pytest.param(restricted, info_of(2), [], ("11", True, True), id="9-no-providers"),
        pytest.param(
            SingleNumaNodePolicy, info_of(2), [None, {}], ("-", True, True), id="9-dont-care"
        ),
        pytest.param(
            restricted, info_of(3), [None], ("111", True, True), id="10-memory-only-node-counts"
        ),
        pytest.param(
            restricted,
            info_of(3),
            [{"cpu": hints("011 p")}],
            ("011", True, True),
            id="10-cpu-hint-is-not-default",
        ),
        pytest.param(restricted, info_of(2), OUTSIDE, ("11", True, True), id="14-equal-outside"),
        pytest.param(
            best_effort,
            info_of(2),
            OUTSIDE_UNEQUAL,
            ("11", False, True),
            id="14-unequal-outside",
        ),
        pytest.param(
            best_effort,
            info_of(4),
            [{"a": hints("0011 p")}, {"b": hints("0101 p")}],
            ("0001", False, True),
            id="uc-32-best-effort",
        ),
        pytest.param(
            restricted,
            info_of(4),
            [{"a": hints("0011 p")}, {"b": hints("0101 p")}],
            ("0001", False, False),
            id="uc-32-restricted",
        ),
        pytest.param(
            restricted,
            info_of(3),
            [{"cpu": hints("011 n, 101 n, 110 n, 111 n")}],
            ("011", False, False),
            id="uc-01-restricted",
        ),
        pytest.param(
            best_effort,
            info_of(3),
            [{"cpu": hints("011 n, 101 n, 110 n, 111 n")}],
            ("011", False, True),
            id="uc-01-best-effort",
        ),
    ],
)
def test_worked_traps(
    make: Callable[[NumaInfo], Policy],
    info: NumaInfo,
    answers: list[ProviderHints],
    expected: tuple[str, bool, bool],
) -> None:
    mask, preferred, admitted = expected
    best = TopologyHint(None if mask == "-" else NumaMask(int(mask, 2)), preferred)

    assert make(info).decide(answers) == Verdict(best, admitted)
