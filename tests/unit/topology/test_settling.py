"""Record and books on paper: the rules one by one, and every interruption of a node on paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.topology.settling_model import (
    PROCESSES,
    PROVIDERS,
    TOPOLOGY,
    Full,
    Given,
    Held,
    Killed,
    Provider,
    Steps,
    Topology,
    by_pod,
)

from numalign.errors import Unavailable
from numalign.model.ids import AdmissionId, PodUid
from numalign.topology.settling import (
    Told,
    decided_under,
    differences,
    in_group,
    names_every_pod,
    told,
    unclaimed,
)

T = TypeVar("T")

A, B, C = PodUid("a"), PodUid("b"), PodUid("c")
RECORDED = {A: AdmissionId("1"), B: AdmissionId("2"), C: AdmissionId("3")}

RECOVERY_STEPS = 16
"""So many steps are more than it takes to meet both providers."""

SCENARIO = (("admit", A), ("resize", A), ("release", A), ("admit", B))


@pytest.mark.parametrize(
    ("whole", "ready", "complete"),
    [
        pytest.param(True, True, True, id="all-is-known"),
        pytest.param(True, False, False, id="sources-to-come"),
        pytest.param(False, True, False, id="record-lost"),
    ],
)
def test_what_a_provider_is_told(whole: bool, ready: bool, complete: bool) -> None:
    assert told(RECORDED, {A, C, PodUid("x")}, sources_ready=ready, whole=whole) == Told(
        active=(A, C),
        committed=tuple(RECORDED.values()),
        complete=complete,
        record_lost=not whole,
    )


def test_a_provider_is_told_of_a_group_by_the_id_that_it_knows() -> None:
    group, single = AdmissionId("run-1"), AdmissionId("run-2")
    recorded = {
        PodUid("a"): in_group(group, 1),
        PodUid("b"): in_group(group, 2),
        PodUid("c"): single,
    }

    say = told(recorded, frozenset(recorded), sources_ready=True, whole=True)

    assert say.committed == (group, single)
    assert say.active == ("a", "b", "c")
    assert len({*recorded.values()}) == len(recorded)
    assert decided_under(single) == single


def test_differences_are_pods_to_give_back_and_strays() -> None:
    found = differences(
        {A: 1, B: 2, C: 3},
        {B: 2, C: 4, PodUid("x"): 5},
        lambda recorded, held: recorded == held,
        placed_before=lambda recorded: recorded == 2,
    )
    assert found.give_back == (A, B, C)
    assert found.strays == {"x"}


@pytest.mark.parametrize(
    ("met", "whole"),
    [
        pytest.param({"cpu": [], "memory": []}, True, id="nobody-has-strays"),
        pytest.param({"cpu": []}, False, id="one-is-to-come"),
        pytest.param({"cpu": [], "memory": [A]}, False, id="a-stray"),
        pytest.param({"cpu": [], "memory": [], "other": [A]}, False, id="a-stray-of-another"),
    ],
)
def test_when_a_lost_record_is_whole_again(met: Mapping[str, list[PodUid]], whole: bool) -> None:
    assert names_every_pod(met, PROVIDERS) is whole


def test_a_stray_has_ended_when_no_owner_names_it() -> None:
    assert unclaimed(frozenset({A, B, C}), [{A}, {B}], complete=True) == (C,)
    assert unclaimed(frozenset({A, B, C}), [{A}], complete=False) == ()


@dataclass(frozen=True)
class Crash:
    """A process dies before the step of that number; `loses`: its disk as well."""

    step: int
    process: str
    loses: bool = False


@dataclass
class Node:
    """Carries operations out, kills on the way, and knows what an agent was told."""

    crashes: tuple[Crash, ...]
    step: int = 0
    told_given: dict[PodUid, Given] = field(default_factory=dict)
    unsure: set[PodUid] = field(default_factory=set)
    gone: set[PodUid] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.providers = [Provider(name) for name in PROVIDERS]
        self.topology = Topology(self.providers)
        self._looked_at: set[Held] = set()

    def run(self, operations: tuple[tuple[str, PodUid], ...]) -> None:
        """Each call once, as an agent makes it; then until all is settled."""
        for name, uid in operations:
            getattr(self, name)(uid)
        self._settle()
        if not self.topology.whole:
            self._say_what_there_is()
            self._settle()
        self.check()

    def admit(self, uid: PodUid) -> None:
        self.gone.discard(uid)
        self.unsure.add(uid)
        try:
            parts = self._carry_out(self.topology.admit(uid))
        except Full:
            self.unsure.discard(uid)
            self.gone.add(uid)
        except (Killed, Unavailable):
            return
        else:
            assert self.told_given.setdefault(uid, parts) == parts
            self.unsure.discard(uid)

    def resize(self, uid: PodUid) -> None:
        """Where there is no answer, the pod has what it had, or what it asked for."""
        was_sure = uid not in self.unsure
        before = self.told_given.pop(uid, None)
        self.unsure.add(uid)
        try:
            parts = self._carry_out(self.topology.resize(uid))
        except Full:
            parts = before
        except (Killed, Unavailable):
            return
        if parts is not None:
            self.told_given[uid] = parts
        if was_sure:
            self.unsure.discard(uid)

    def release(self, uid: PodUid) -> None:
        self.told_given.pop(uid, None)
        self.unsure.add(uid)
        try:
            self._carry_out(self.topology.release(uid))
        except (Killed, Unavailable):
            return
        self.unsure.discard(uid)
        self.gone.add(uid)

    def _settle(self) -> None:
        self._patiently(self.topology.ready)
        while not self.topology.hear():
            self._patiently(self.topology.ready)

    def _say_what_there_is(self) -> None:
        """The record was lost: the agent names its pods again, and then says that this is all."""
        for uid, parts in self.told_given.items():
            assert self._patiently(lambda uid=uid: self.topology.admit(uid)) == parts  # type: ignore[misc]
        named = frozenset(self.told_given)
        self._patiently(lambda: self.topology.reconcile(named))
        self.unsure.clear()
        assert self.topology.whole

    def _patiently(self, begin: Callable[[], Steps[T]]) -> T:
        while True:
            try:
                return self._carry_out(begin())
            except (Killed, Unavailable):
                continue

    def _carry_out(self, steps: Steps[T]) -> T:
        """To the end, or until the Topology Manager dies. Raises what the operation raises."""
        try:
            at_work = next(steps)
            while True:
                died = [crash for crash in self.crashes if crash.step == self.step]
                self.step += 1
                for crash in died:
                    self._kill(crash)
                if any(crash.process == TOPOLOGY for crash in died):
                    steps.close()
                    raise Killed
                if any(crash.process == at_work for crash in died):
                    at_work = steps.throw(Killed())
                else:
                    at_work = next(steps)
                self.check_units()
        except StopIteration as end:
            result: T = end.value
            return result

    def _kill(self, crash: Crash) -> None:
        dead: Provider | Topology = self.topology
        for provider in self.providers:
            if provider.name == crash.process:
                dead = provider
        if crash.loses:
            dead.lose()
        dead.start()

    def check_units(self) -> None:
        """At every moment: nothing is given twice, in memory or on disk."""
        for provider in self.providers:
            for held in (provider.phases.books.state, provider.kept):
                if held not in self._looked_at:
                    assert len({unit for unit, _ in held}) == len(held)
                    self._looked_at.add(held)

    def check(self) -> None:
        """Once all is settled: the record, the books and the agent say the same."""
        rows = self.topology.rows
        assert self.topology.problems == 0
        for provider in self.providers:
            assert not provider.phases.prepared
            assert not provider.phases.in_doubt
            recorded = {uid: row.given[provider.name] for uid, row in rows.items()}
            assert by_pod(provider.phases.books.state) == recorded
            assert provider.kept == provider.phases.books.state
        for uid, parts in self.told_given.items():
            assert rows[uid].given == parts
        assert not self.gone.intersection(rows)
        assert set(rows) <= set(self.told_given) | self.unsure


def walked(*crashes: Crash) -> int:
    """How many steps there are when these crashes happen, which break nothing."""
    node = Node(crashes)
    try:
        node.run(SCENARIO)
    except AssertionError as error:
        error.add_note(str(crashes))
        raise
    return node.step


def test_nobody_dies() -> None:
    node = Node(())
    node.run((*SCENARIO, ("admit", C)))
    first, second = frozenset({0}), frozenset({1})
    assert node.told_given == {
        B: {"cpu": first, "memory": first},
        C: {"cpu": second, "memory": second},
    }
    assert node.gone == {A}


def after(first: Crash) -> Iterator[Crash]:
    """Every second crash while the node recovers from the first."""
    last = min(walked(first), first.step + RECOVERY_STEPS)
    for step, process in product(range(first.step, last), PROCESSES):
        yield Crash(step, process)


def test_every_process_dies_before_every_step_and_again_while_that_is_settled() -> None:
    tried = 0
    for first in (Crash(*at) for at in product(range(walked()), PROCESSES)):
        for second in after(first):
            walked(first, second)
            tried += 1
    assert tried > 5_000


@pytest.mark.parametrize("process", PROCESSES)
def test_whose_disk_is_lost_gets_everything_back(process: str) -> None:
    for step in range(walked()):
        first = Crash(step, process, loses=True)
        for second in after(first):
            walked(first, second)


@given(
    operations=st.lists(
        st.tuples(st.sampled_from(("admit", "resize", "release")), st.sampled_from((A, B, C))),
        min_size=1,
        max_size=8,
    ),
    crashes=st.lists(st.builds(Crash, st.integers(0, 150), st.sampled_from(PROCESSES)), max_size=6),
)
@settings(max_examples=200, deadline=None)
def test_any_calls_and_any_crashes(
    operations: list[tuple[str, PodUid]], crashes: list[Crash]
) -> None:
    Node(tuple(crashes)).run(tuple(operations))
