"""When records of pods that ended go away."""

from __future__ import annotations

from tests.unit.provider.ledger_world import ListEngine, State, pod

from numalign.model.ids import PodUid
from numalign.provider.cleanup import EagerCleanup, LazyCleanup

A, B = PodUid("a"), PodUid("b")
NAMES = frozenset({"i", "c"})
NONE_RUN: frozenset[tuple[PodUid, str]] = frozenset()


def test_eager_frees_at_once_and_tells_engines_of_nothing_stale() -> None:
    cleanup: EagerCleanup[State] = EagerCleanup(ListEngine())
    assert cleanup.released(("a", "b"), A) == ("b",)
    assert cleanup.sources().active is None


def test_eager_frees_what_a_complete_picture_lacks() -> None:
    cleanup: EagerCleanup[State] = EagerCleanup(ListEngine())
    running = frozenset({(B, "c")})
    assert cleanup.reconciled(("a", "b"), {}, ready=False, running=running) == (("a", "b"), ())
    assert cleanup.sources().running == running
    state, gone = cleanup.reconciled(("a", "b"), {B: NAMES}, ready=True, running=NONE_RUN)
    assert (state, gone) == (("b",), ("a",))


def test_lazy_cleans_nothing_before_the_picture_is_complete() -> None:
    cleanup: LazyCleanup[State] = LazyCleanup()
    cleanup.admitting(pod("a"))
    assert cleanup.sources().active is None
    assert not cleanup.sources().ready
    cleanup.reconciled((), {B: NAMES}, ready=True, running=NONE_RUN)
    assert cleanup.sources().active == {B: NAMES}


def test_lazy_leaves_what_ended_pods_hold() -> None:
    cleanup: LazyCleanup[State] = LazyCleanup()
    cleanup.reconciled(("a", "b"), {A: NAMES, B: NAMES}, ready=True, running=NONE_RUN)
    assert cleanup.released(("a", "b"), A) == ("a", "b")
    assert cleanup.sources().active == {B: NAMES}


def test_lazy_counts_a_pod_as_active_while_it_is_decided_on() -> None:
    cleanup: LazyCleanup[State] = LazyCleanup()
    cleanup.reconciled((), {A: frozenset({"old"})}, ready=True, running=NONE_RUN)
    cleanup.admitting(pod("a"))
    assert cleanup.sources().active == {A: NAMES}
    cleanup.undone(A)
    assert cleanup.sources().active == {A: frozenset({"old"})}
    cleanup.admitting(pod("b"))
    cleanup.undone(B)
    assert cleanup.sources().active == {A: frozenset({"old"})}
    cleanup.admitting(pod("b"))
    cleanup.refused(B)
    assert cleanup.sources().active == {A: frozenset({"old"})}
