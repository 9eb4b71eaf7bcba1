"""Best effort with CPUs and memory first: when these decide alone, and what is said of the rest."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.model.hint import FamilyList, HintList, Piece, ProviderHints, TopologyHint
from numalign.model.numa_mask import NumaMask, mask_of
from numalign.topology.numa_info import NumaInfo, narrowest
from numalign.topology.policy import Verdict
from numalign.topology.policy_best_effort import BestEffortPolicy
from numalign.topology.scope import MergeRecord, ScopeResult

NODES = (0, 1, 2)
INFO = NumaInfo(nodes=NODES, default_mask=mask_of(NODES))
PLAIN = BestEffortPolicy(INFO, narrowest)
FIRST = BestEffortPolicy(INFO, narrowest, cpu_and_memory_first=True)
VF = "example.com/vf"


def on(*nodes: int, preferred: bool = True) -> TopologyHint:
    return TopologyHint(mask_of(nodes), preferred)


def wide(*nodes: int) -> TopologyHint:
    return on(*nodes, preferred=False)


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        pytest.param(
            [{VF: (on(0), wide(0, 1))}, {"cpu": (on(1), wide(0, 1))}, None],
            Verdict(wide(1), True, remote=(VF,)),
            id="uc-07",
        ),
        pytest.param(
            [{VF: (on(0),)}, {"cpu": (on(1),)}, {"memory": (on(1), on(2)), "hugepages-2Mi": None}],
            Verdict(wide(1), True, remote=(VF,)),
            id="cpus-and-memory-together",
        ),
        pytest.param(
            [{VF: (on(0), on(1))}, {"cpu": (on(0), on(1))}],
            Verdict(on(0), True),
            id="all-agree",
        ),
        pytest.param(
            [{VF: (on(0),)}, {"cpu": (on(1),)}, {"memory": (on(2),)}],
            PLAIN.decide([{VF: (on(0),)}, {"cpu": (on(1),)}, {"memory": (on(2),)}]),
            id="cpus-and-memory-disagree",
        ),
        pytest.param(
            [{VF: (on(0),), "example.com/gpu": (on(1),)}, None, {}],
            PLAIN.decide([{VF: (on(0),), "example.com/gpu": (on(1),)}, None, {}]),
            id="devices-alone",
        ),
        pytest.param(
            [{VF: ()}, {"cpu": (on(1),)}], Verdict(wide(1), True, remote=(VF,)), id="nowhere"
        ),
        pytest.param(
            [{VF: (on(0),), "example.com/gpu": (wide(1), wide(0, 1))}, {"cpu": (on(1),)}],
            Verdict(wide(1), True, remote=(VF,)),
            id="only-those-without-that-node-are-remote",
        ),
    ],
)
def test_verdict(answers: list[ProviderHints], verdict: Verdict) -> None:
    assert FIRST.decide(answers) == verdict


def test_described_lists() -> None:
    many = NumaInfo(nodes=tuple(range(12)), default_mask=mask_of(range(12)))
    cpus = FamilyList(
        pieces=(Piece(mask_of([5, 6]), NumaMask(0), ()),), preferred_count=1, explicit=()
    )
    devices = FamilyList(pieces=(Piece(mask_of([0]), NumaMask(0), ()),), preferred_count=1)
    first = BestEffortPolicy(many, narrowest, cpu_and_memory_first=True)

    assert first.decide([{VF: devices}, {"cpu": cpus}]) == Verdict(
        on(5, preferred=False), True, remote=(VF,)
    )


def test_the_answer_names_what_is_remote() -> None:
    records = [
        MergeRecord(container="c", answers=(), best=wide(1), admitted=True, remote=(VF, "b.c/d")),
        MergeRecord(container="d", answers=(), best=wide(1), admitted=True),
        MergeRecord(container=None, answers=(), best=wide(1), admitted=True, remote=(VF,)),
    ]

    elsewhere = "may come from other NUMA nodes than CPUs and memory"
    assert ScopeResult(admitted=True, merges=tuple(records)).warnings == (
        f'for container "c" example.com/vf, b.c/d {elsewhere}',
        f"for the pod example.com/vf {elsewhere}",
    )


hint_lists = st.lists(
    st.builds(
        lambda nodes, preferred: TopologyHint(mask_of(nodes), preferred),
        st.sets(st.sampled_from(NODES), min_size=1),
        st.booleans(),
    ),
    max_size=4,
).map(tuple)


@given(
    cpu=hint_lists, memory=hint_lists, devices=st.dictionaries(st.sampled_from("ab"), hint_lists)
)
def test_it_changes_only_what_does_not_suit_all(
    cpu: HintList, memory: HintList, devices: Mapping[str, HintList]
) -> None:
    own: list[ProviderHints] = [{"cpu": cpu}, {"memory": memory}]
    answers: list[ProviderHints] = [{f"example.com/{k}": v for k, v in devices.items()}, *own]

    first, plain, alone = FIRST.decide(answers), PLAIN.decide(answers), PLAIN.decide(own)

    assert first.admitted
    if plain.best.preferred or not alone.best.preferred:
        assert first == plain
    else:
        assert first.best == TopologyHint(alone.best.mask, False)
