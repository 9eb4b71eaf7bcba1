"""Which containers are told something, in which order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.model.cpu_set import NO_CPUS, CpuSet
from numalign_agent.nri.plan.pinning import Pinning
from numalign_agent.nri.plan.updates import LiveContainer, Update, update_of, updates

CPUS = 6


def cpus(text: str) -> CpuSet:
    return CpuSet.parse(text)


def shared(text: str) -> Pinning:
    return Pinning(cpus(text))


def own(text: str, mems: str = "") -> Pinning:
    return Pinning(cpus(text), cpus(mems), exclusive=True)


@pytest.mark.parametrize(
    ("given_", "wanted", "quota", "update"),
    [
        pytest.param(shared("0-3"), shared("0-3"), 0, None, id="nothing-to-change"),
        pytest.param(shared("0-3"), None, 0, None, id="left-alone"),
        pytest.param(
            shared("0-3"), shared("0-1"), 0, Update("c", Pinning(cpus("0-1"))), id="pool-shrinks"
        ),
        pytest.param(
            Pinning(), own("2", "0"), 200, Update("c", own("2", "0"), -1), id="pinned-live"
        ),
        pytest.param(
            own("2", "0"), own("2", "0-1"), 200, Update("c", own("", "0-1")), id="memory-alone"
        ),
        pytest.param(
            own("2"), shared("0-3"), 200, Update("c", shared("0-3"), 200), id="quota-comes-back"
        ),
        pytest.param(own("2"), shared("0-3"), 0, Update("c", shared("0-3")), id="had-no-quota"),
        pytest.param(Pinning(cpus("2")), own("2"), 200, Update("c", own(""), -1), id="quota-alone"),
    ],
)
def test_update(given_: Pinning, wanted: Pinning | None, quota: int, update: Update | None) -> None:
    container = LiveContainer(id="c", given=given_, wanted=wanted, quota=quota)

    assert update_of(container, set_quota=True) == update


def test_the_quota_is_left_alone_where_that_is_wanted() -> None:
    container = LiveContainer(id="c", given=Pinning(cpus("2")), wanted=own("2"), quota=200)

    assert update_of(container, set_quota=False) is None


def test_who_loses_cpus_is_told_before_who_gets_them() -> None:
    found = updates(
        [
            LiveContainer(id="gets", given=shared("0-3"), wanted=own("3")),
            LiveContainer(id="grows", given=shared("0"), wanted=shared("0-2")),
            LiveContainer(id="loses", given=shared("0-3"), wanted=shared("0-2")),
            LiveContainer(id="unknown", given=Pinning(), wanted=shared("0-2")),
        ],
        set_quota=False,
    )

    assert [update.container_id for update in found] == ["loses", "unknown", "gets", "grows"]


SETS = st.integers(1, (1 << CPUS) - 1).map(CpuSet)


@given(
    st.lists(st.one_of(st.just(NO_CPUS), SETS), max_size=6),
    st.integers(0, (1 << CPUS) - 1).map(CpuSet),
)
def test_at_no_moment_is_a_shared_container_where_an_exclusive_one_was_put(
    shared_before: list[CpuSet], exclusive: CpuSet
) -> None:
    """Applied one by one: when the exclusive container moves, everybody else has moved away."""
    everything = CpuSet.of(range(CPUS))
    pool = everything - exclusive
    live = [
        LiveContainer(id=str(at), given=Pinning(before), wanted=Pinning(pool) if pool else None)
        for at, before in enumerate(shared_before)
    ]
    live.insert(
        len(live) // 2,
        LiveContainer(id="own", given=Pinning(), wanted=Pinning(exclusive, exclusive=True)),
    )
    places = {c.id: c.given.cpus or everything for c in live}
    for update in updates(live, set_quota=False):
        places[update.container_id] = update.pinning.cpus
        if update.container_id == "own" and pool:
            for other in live:
                if other.id != "own":
                    assert places[other.id].isdisjoint(exclusive)

    if pool:
        assert all(places[c.id] == c.wanted.cpus for c in live if c.wanted and c.wanted.cpus)
