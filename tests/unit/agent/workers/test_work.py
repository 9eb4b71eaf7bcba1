"""The state machine of a pod's worker, WRK-3 to WRK-9, and what others ask, WRK-12."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.agent.made import pod

from numalign_agent.pod import AgentPod
from numalign_agent.workers import questions
from numalign_agent.workers import work as w
from numalign_agent.workers.forgetting import Pruned, pruned
from numalign_agent.workers.work import (
    EndedBy,
    Kill,
    PodWork,
    Reaction,
    Update,
    UpdateKind,
    WorkState,
    accept,
    first_work,
)

NOW = 1000.0
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}


def create(of: AgentPod, **fields: Any) -> Update:
    return Update(UpdateKind.CREATE, of, **fields)


def kill(of: AgentPod, **fields: Any) -> Update:
    return Update(UpdateKind.KILL, of, kill=Kill(**fields))


def begun(of: AgentPod | None = None) -> PodWork:
    return w.began(first_work(create(of or pod()), NOW, runtime_idle=True))


def ending() -> PodWork:
    return accept(begun(), kill(pod()), NOW)[0]


def done() -> PodWork:
    return w.finished(w.stopped(ending()))


@pytest.mark.parametrize(
    ("update", "idle", "state", "deleted"),
    [
        pytest.param(create(pod()), True, WorkState.SYNC, False, id="a pod to run"),
        pytest.param(
            create(pod(metadata=DELETED)), True, WorkState.TERMINATING, True, id="being deleted"
        ),
        pytest.param(
            create(pod(status={"phase": "Succeeded"})),
            True,
            WorkState.TERMINATED,
            False,
            id="WRK-7: over, and nothing runs",
        ),
        pytest.param(
            create(pod(status={"phase": "Failed"})),
            False,
            WorkState.TERMINATING,
            False,
            id="over, and something runs",
        ),
        pytest.param(kill(pod()), True, WorkState.TERMINATING, False, id="a kill"),
        pytest.param(
            Update(UpdateKind.KILL, pod(), kill=Kill(grace=1), orphan=True),
            False,
            WorkState.TERMINATING,
            True,
            id="an orphan of the runtime",
        ),
    ],
)
def test_first_sight(update: Update, idle: bool, state: WorkState, deleted: bool) -> None:
    work = first_work(update, NOW, runtime_idle=idle)

    assert (work.state, work.deleted) == (state, deleted)
    assert work.end_requested == (state is not WorkState.SYNC)


@pytest.mark.parametrize(
    ("work", "update", "reaction", "state"),
    [
        pytest.param(
            begun(), Update(UpdateKind.SYNC, pod()), Reaction.LOOK, WorkState.SYNC, id="a sync"
        ),
        pytest.param(
            begun(),
            Update(UpdateKind.UPDATE, pod(metadata=DELETED)),
            Reaction.INTERRUPT,
            WorkState.TERMINATING,
            id="WRK-4: a deletion is an update, trap 1",
        ),
        pytest.param(
            begun(), kill(pod(), evict=True), Reaction.INTERRUPT, WorkState.TERMINATING, id="a kill"
        ),
        pytest.param(
            ending(), kill(pod()), Reaction.LOOK, WorkState.TERMINATING, id="another kill"
        ),
        pytest.param(
            accept(begun(), kill(pod(), grace=30), NOW)[0],
            kill(pod(), grace=5),
            Reaction.INTERRUPT,
            WorkState.TERMINATING,
            id="WRK-5: a shorter grace",
        ),
        pytest.param(
            ending(), create(pod()), Reaction.IGNORE, WorkState.TERMINATING, id="WRK-8: a create"
        ),
        pytest.param(
            done(),
            Update(UpdateKind.UPDATE, pod()),
            Reaction.IGNORE,
            WorkState.FINISHED,
            id="WRK-9: finished",
        ),
        pytest.param(
            w.stopped(ending()),
            Update(UpdateKind.KILL, pod(), orphan=True),
            Reaction.IGNORE,
            WorkState.TERMINATED,
            id="an old listing of a terminated pod",
        ),
    ],
)
def test_updates(work: PodWork, update: Update, reaction: Reaction, state: WorkState) -> None:
    after, done_about_it = accept(work, update, NOW)

    assert (done_about_it, after.state) == (reaction, state)


def test_a_create_for_a_pod_that_ends_asks_for_a_restart() -> None:
    assert accept(ending(), create(pod()), NOW)[0].restart_requested


def test_an_eviction_is_remembered_and_the_last_reason_counts() -> None:
    first = accept(begun(), kill(pod(), evict=True, ended_by=EndedBy("A", "a")), NOW)[0]
    second = accept(first, kill(pod(), ended_by=EndedBy("B", "b")), NOW)[0]
    third = accept(second, kill(pod()), NOW)[0]

    assert third.evicted
    assert third.ended_by == EndedBy("B", "b")


def test_a_pod_that_is_over_ends_with_its_own_grace() -> None:
    work = w.turned_terminal(begun(pod(terminationGracePeriodSeconds=7)), NOW)

    assert (work.state, work.grace, work.end_requested_at) == (WorkState.TERMINATING, 7, NOW)


_ORDER = list(WorkState)


@given(
    st.lists(
        st.one_of(
            st.builds(
                Update,
                kind=st.sampled_from(UpdateKind),
                pod=st.sampled_from(
                    [pod(), pod(metadata=DELETED), pod(status={"phase": "Succeeded"})]
                ),
                kill=st.none() | st.builds(Kill, evict=st.booleans(), grace=st.integers(0, 60)),
                orphan=st.booleans(),
            ),
            st.sampled_from(["begin", "over", "end of the operation"]),
        ),
        max_size=12,
    )
)
def test_nothing_ever_goes_backwards(steps: list[Update | str]) -> None:
    """WRK-3, WRK-6: whatever comes, states go forward and grace gets shorter."""
    work = first_work(create(pod()), NOW, runtime_idle=True)
    for step in steps:
        before = work
        if isinstance(step, Update):
            work = accept(work, step, NOW)[0]
        elif step == "begin":
            work = w.began(work)
        elif step == "over" and work.state is WorkState.SYNC:
            work = w.turned_terminal(work, NOW)
        elif work.state is WorkState.TERMINATING:
            work = w.stopped(work)
        elif work.state is WorkState.TERMINATED:
            work = w.finished(work)

        assert _ORDER.index(work.state) >= _ORDER.index(before.state)
        assert before.grace is None or (work.grace is not None and work.grace <= before.grace)
        assert work.end_requested == (work.state is not WorkState.SYNC)
        assert work.end_requested or not before.end_requested


UNKNOWN = None


@pytest.mark.parametrize(
    ("question", "works", "before", "after"),
    [
        (
            questions.may_run,
            {begun: True, ending: True, done: False},
            True,
            False,
        ),
        (
            questions.is_finished,
            {begun: False, ending: False, done: True},
            False,
            True,
        ),
        (
            questions.should_be_ending,
            {begun: False, ending: False, lambda: w.began(ending()): True, done: False},
            False,
            True,
        ),
        (questions.runtime_goes, {begun: False, ending: False, done: True}, False, True),
        (
            questions.content_goes,
            {
                begun: False,
                done: False,
                lambda: accept(begun(), kill(pod(), evict=True), NOW)[0]: True,
                lambda: accept(begun(), Update(UpdateKind.UPDATE, pod(metadata=DELETED)), NOW)[
                    0
                ]: False,
                lambda: w.stopped(
                    accept(begun(), Update(UpdateKind.UPDATE, pod(metadata=DELETED)), NOW)[0]
                ): True,
            },
            False,
            True,
        ),
    ],
)
def test_questions(question: Any, works: dict[Any, bool], before: bool, after: bool) -> None:
    for make, answer in works.items():
        assert question(make(), tidied=True) is answer
        assert question(make(), tidied=False) is answer
    assert question(None, tidied=False) is before
    assert question(None, tidied=True) is after


def test_questions_that_do_not_depend_on_housekeeping() -> None:
    assert not questions.known_terminated(None)
    assert questions.known_terminated(done())
    assert not questions.end_requested(None)
    assert questions.end_requested(ending())


@pytest.mark.parametrize(
    ("work", "desired", "in_runtime", "expected"),
    [
        pytest.param(begun(), True, True, Pruned(), id="wanted"),
        pytest.param(done(), True, False, Pruned(), id="wanted, and finished"),
        pytest.param(done(), False, False, Pruned(forget=("u",)), id="orphan, finished"),
        pytest.param(
            accept(done(), create(pod()), NOW)[0],
            True,
            False,
            Pruned(forget=("u",)),
            id="to be restarted, finished",
        ),
        pytest.param(
            accept(ending(), create(pod()), NOW)[0], True, True, Pruned(), id="to be restarted"
        ),
        pytest.param(
            first_work(create(pod()), NOW, runtime_idle=True),
            False,
            False,
            Pruned(forget=("u",)),
            id="orphan, never started",
        ),
        pytest.param(
            first_work(create(pod()), NOW, runtime_idle=False),
            False,
            True,
            Pruned(end=("u",)),
            id="orphan, seen in the runtime",
        ),
        pytest.param(begun(), False, True, Pruned(end=("u",)), id="orphan, started"),
        pytest.param(w.began(ending()), False, True, Pruned(push=("u",)), id="orphan, ending"),
    ],
)
def test_pruning(work: PodWork, desired: bool, in_runtime: bool, expected: Pruned) -> None:
    """WRK-10."""
    uids = {"u"}

    assert (
        pruned({"u": work}, uids if desired else set(), uids if in_runtime else set()) == expected
    )
