"""Why a merge came out as it did: causes, who is to blame, and the sentence."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.model.hint import FamilyList, Piece, ProviderHints, Threshold, TopologyHint
from numalign.model.numa_mask import NumaMask, mask_of
from numalign.topology.explain_merge import MergeCause, explain_merge, mask_words
from numalign.topology.numa_info import NumaInfo, narrowest
from numalign.topology.policy import Policy
from numalign.topology.policy_best_effort import BestEffortPolicy
from numalign.topology.policy_restricted import RestrictedPolicy
from numalign.topology.policy_single_numa_node import SingleNumaNodePolicy
from numalign.topology.ports import ProviderAnswer
from numalign.topology.scope import MergeRecord

INFO = NumaInfo(nodes=(0, 1, 2), default_mask=NumaMask(7))
RESTRICTED = RestrictedPolicy(INFO, narrowest)
BEST_EFFORT = BestEffortPolicy(INFO, narrowest)
SINGLE = SingleNumaNodePolicy(INFO)


def good(*masks: int) -> tuple[TopologyHint, ...]:
    return tuple(TopologyHint(NumaMask(mask), True) for mask in masks)


def poor(*masks: int) -> tuple[TopologyHint, ...]:
    return tuple(TopologyHint(NumaMask(mask), False) for mask in masks)


def record_of(
    policy: Policy, *answers: tuple[str, ProviderHints], container: str | None = "c"
) -> MergeRecord:
    verdict = policy.decide([hints for _, hints in answers])
    return MergeRecord(
        container=container,
        answers=tuple(ProviderAnswer(name, hints) for name, hints in answers),
        best=verdict.best,
        admitted=verdict.admitted,
    )


@pytest.mark.parametrize(
    ("policy", "answers", "cause", "clashing", "sentence"),
    [
        pytest.param(
            RESTRICTED,
            [("device", {"gpu": good(1)}), ("cpu", {"cpu": good(1, 2, 4)}), ("memory", None)],
            MergeCause.ALIGNED,
            (),
            'policy restricted admits container "c": all resources agree on {0}',
            id="aligned",
        ),
        pytest.param(
            RESTRICTED,
            [("memory", {})],
            MergeCause.ALIGNED,
            (),
            'policy restricted admits container "c": all resources agree on {0,1,2}',
            id="nothing-asked-for",
        ),
        pytest.param(
            SINGLE,
            [("memory", {"memory": None})],
            MergeCause.ALIGNED,
            (),
            'policy single-numa-node admits container "c": all resources agree on any node',
            id="any-node",
        ),
        pytest.param(
            RESTRICTED,
            [
                ("device", {"gpu": good(1) + poor(3)}),
                ("cpu", {"cpu": good(2, 4) + poor(6)}),
                ("memory", {"memory": good(1, 2, 4)}),
            ],
            MergeCause.NO_COMMON_MASK,
            ("gpu", "cpu"),
            'policy restricted refuses container "c": gpu and cpu have no set of NUMA nodes in '
            "common (gpu on {0}; cpu on {1} or {2})",
            id="two-of-three-clash",
        ),
        pytest.param(
            BEST_EFFORT,
            [("a", {"a": good(1, 2)}), ("b", {"b": good(2, 4)}), ("c", {"c": good(1, 4)})],
            MergeCause.NO_COMMON_MASK,
            ("a", "b", "c"),
            'policy best-effort admits container "c" unaligned: a, b and c have no set of NUMA '
            "nodes in common (a on {0} or {1}; b on {1} or {2}; c on {0} or {2})",
            id="only-all-three-clash",
        ),
        pytest.param(
            RESTRICTED,
            [("cpu", {"cpu": good(1, 2, 4, 3, 5, 6)}), ("device", {"gpu": good(7)})],
            MergeCause.NO_COMMON_MASK,
            ("cpu", "gpu"),
            'policy restricted refuses container "c": cpu and gpu have no set of NUMA nodes in '
            "common (cpu on {0} or {1} or {2} or {0,1} or 2 more; gpu on {0,1,2})",
            id="many-masks",
        ),
        pytest.param(
            RESTRICTED,
            [("cpu", {"cpu": poor(3, 5, 6, 7)}), ("device", {"gpu": good(1)})],
            MergeCause.NO_ACCEPTED_MASK,
            ("cpu",),
            'policy restricted refuses container "c": no preferred set of NUMA nodes can give '
            "cpu (best that is left: cpu on {0,1})",
            id="uc-01-fits-but-spread",
        ),
        pytest.param(
            SINGLE,
            [("cpu", {"cpu": good(3, 5, 6)})],
            MergeCause.NO_ACCEPTED_MASK,
            ("cpu",),
            'policy single-numa-node refuses container "c": no NUMA node alone can give cpu',
            id="more-than-one-node",
        ),
        pytest.param(
            RESTRICTED,
            [("cpu", {"cpu": good(1)}), ("device", {"gpu": ()})],
            MergeCause.NOWHERE,
            ("gpu",),
            'policy restricted refuses container "c": no set of NUMA nodes can give gpu',
            id="nowhere",
        ),
        pytest.param(
            RESTRICTED,
            [("cpu", {"cpu": good(8)})],
            MergeCause.NO_ACCEPTED_MASK,
            ("cpu",),
            'policy restricted refuses container "c": no preferred set of NUMA nodes can give '
            "cpu (best that is left: cpu on {0,1,2})",
            id="outside-the-machine",
        ),
    ],
)
def test_verdict(
    policy: Policy,
    answers: list[tuple[str, ProviderHints]],
    cause: MergeCause,
    clashing: tuple[str, ...],
    sentence: str,
) -> None:
    verdict = explain_merge(record_of(policy, *answers), policy, INFO)

    assert (verdict.cause, verdict.clashing, verdict.sentence) == (cause, clashing, sentence)


def test_views_of_the_resources() -> None:
    """uc-32: two masks that overlap are not a common mask."""
    record = record_of(
        RESTRICTED,
        ("device", {"a": good(6, 3), "free": None}),
        ("cpu", None),
        ("memory", {"b": (*good(5), TopologyHint(None, False))}),
        container=None,
    )

    verdict = explain_merge(record, RESTRICTED, INFO)
    first, second = verdict.resources

    assert not verdict.admitted
    assert (first.provider, first.resource, first.accepted) == ("device", "a", (3, 6))
    assert (second.provider, second.resource, second.accepted) == ("memory", "b", (5,))
    assert not second.any_node
    assert not second.nowhere
    assert verdict.sentence.startswith("policy restricted refuses the pod: a and b have no set")


def test_a_resource_that_would_do_anywhere_is_never_blamed() -> None:
    anywhere = (*good(1), TopologyHint(None, True))
    record = record_of(
        RESTRICTED, ("x", {"x": anywhere}), ("y", {"y": good(2)}), ("z", {"z": good(4)})
    )

    verdict = explain_merge(record, RESTRICTED, INFO)

    assert verdict.resources[0].any_node
    assert verdict.clashing == ("y", "z")


def test_best_that_is_left_is_not_told_where_a_distance_is_missing() -> None:
    sparse = NumaInfo(
        nodes=(0, 8), default_mask=mask_of((0, 8)), distances={0: (10, 32), 8: (32, 10)}
    )
    policy = RestrictedPolicy(sparse, sparse.closest)
    left = tuple(TopologyHint(mask_of((node,)), False) for node in (0, 8))
    record = record_of(policy, ("cpu", {"cpu": left}), ("device", {"gpu": left[:1]}))

    sentence = explain_merge(record, policy, sparse).sentence

    assert sentence.endswith("can give cpu and gpu (best that is left: gpu on {0})")


def test_best_that_is_left_of_a_described_list_is_the_merge_of_it_alone() -> None:
    nodes = range(16)
    numa = NumaInfo(
        nodes=tuple(nodes),
        default_mask=mask_of(nodes),
        distances={a: tuple(10 if a == b else 12 + (a ^ b) for b in nodes) for a in nodes},
    )
    policy = BestEffortPolicy(numa, numa.closest)
    free = tuple(node % 5 for node in nodes)
    family = FamilyList((Piece(numa.default_mask, thresholds=(Threshold(9, free),)),), (), 1)
    record = record_of(policy, ("cpu", {"cpu": family}))

    sentence = explain_merge(record, policy, numa).sentence

    best = policy.decide([{"cpu": family}]).best
    assert sentence.endswith(f"(best that is left: cpu on {mask_words(best.mask)})")


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        pytest.param(None, "any node", id="no-affinity"),
        pytest.param(NumaMask(0b1001), "{0,3}", id="two-nodes"),
    ],
)
def test_mask_words(mask: NumaMask | None, words: str) -> None:
    assert mask_words(mask) == words


HINT = st.builds(TopologyHint, st.none() | st.integers(0, 15).map(NumaMask), st.booleans())
ANSWERS = st.lists(
    st.none()
    | st.dictionaries(
        st.sampled_from("abcd"), st.none() | st.lists(HINT, max_size=4).map(tuple), max_size=3
    ),
    max_size=3,
)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: RESTRICTED, id="restricted"),
        pytest.param(lambda: BEST_EFFORT, id="best-effort"),
        pytest.param(lambda: SINGLE, id="single-numa-node"),
    ],
)
@settings(max_examples=200, deadline=None)
@given(answers=ANSWERS)
def test_aligned_means_preferred(make: Callable[[], Policy], answers: list[ProviderHints]) -> None:
    policy = make()
    record = record_of(policy, *[(str(n), hints) for n, hints in enumerate(answers)])

    verdict = explain_merge(record, policy, INFO)

    assert (verdict.cause is MergeCause.ALIGNED) is record.best.preferred
    assert bool(verdict.clashing) is not record.best.preferred
