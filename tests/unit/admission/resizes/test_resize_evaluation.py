"""Pending resizes: their order, and what an evaluation changes."""

from __future__ import annotations

from collections.abc import Sequence

from tests.unit.admission.handlers.admit_pods import pod

from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.allocation import ResizeGates, allocation_of
from numalign.admission.handlers.verdict import ADMITTED, Verdict, rejected
from numalign.admission.resizes import (
    Evaluated,
    ResizeEvent,
    ResizeState,
    answered,
    evaluated,
    is_pending,
    queued,
    settled,
)
from numalign.kubelet_files.allocation_checkpoint import PodAllocation
from numalign.model.feature_gates import FeatureGates

_RESIZE = ResizeGates()
_DEFERRED = rejected("OutOfcpu", "too much")
_INFEASIBLE = rejected("Infeasible", "never")


def _desired(name: str, cpu: str, generation: int = 1, priority: int = 0) -> AdmitPod:
    return pod(name, requests={"cpu": cpu}, metadata={"generation": generation}, priority=priority)


def _state(*names: str, cpu: str = "1") -> ResizeState:
    given = {f"uid-{n}": allocation_of(pod(n, requests={"cpu": cpu}), _RESIZE) for n in names}
    return ResizeState(allocations=given)


def _queue(state: ResizeState, pods: dict[str, AdmitPod]) -> ResizeState:
    for uid in pods:
        state = queued(state, uid, pods, _RESIZE, FeatureGates())
    return state


def _evaluated(
    state: ResizeState, pods: dict[str, AdmitPod], verdict: Verdict, now: float = 0
) -> Evaluated:
    def ask(_: AdmitPod, __: Sequence[AdmitPod], ___: PodAllocation | None) -> Verdict:
        return verdict

    return evaluated(state, pods, ask, now, _RESIZE)


def test_order_of_the_queue() -> None:
    """RES-2: what raises nothing, then priority, then in the order queued."""
    pods = {
        p.uid: p
        for p in (
            _desired("low", "2"),
            _desired("high", "2", priority=5),
            _desired("low2", "2"),
            _desired("less", "500m"),
        )
    }

    state = _queue(_state("low", "high", "low2", "less"), pods)

    assert state.queue == ("uid-less", "uid-high", "uid-low", "uid-low2")
    assert queued(state, "uid-gone", pods, _RESIZE, FeatureGates()).queue == state.queue


def test_a_granted_resize_is_the_new_allocation() -> None:
    """RES-3."""
    pods = {"uid-a": _desired("a", "2")}
    outcome = _evaluated(_queue(_state("a"), pods), pods, ADMITTED)

    assert outcome.state.queue == ()
    assert outcome.state.allocations["uid-a"] == allocation_of(pods["uid-a"], _RESIZE)
    assert [event.text for event in outcome.events] == [
        (
            'Pod resize started: {"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}],'
            '"generation":1}'
        )
    ]
    assert outcome.synced == ("uid-a",)


def test_a_deferred_resize_is_told_once_and_tried_again() -> None:
    """RES-3, RSZ-6: it counts as changed each time, with no new event."""
    pods = {"uid-a": _desired("a", "2")}
    first = _evaluated(_queue(_state("a"), pods), pods, _DEFERRED, now=1)
    second = _evaluated(first.state, pods, _DEFERRED, now=2)

    assert [event.reason for event in first.events] == ["ResizeDeferred"]
    assert first.events[0].text.startswith("Pod resize OutOfcpu: ")
    assert first.events[0].text.endswith('"error":"too much"}')
    assert (second.events, second.synced) == ((), ("uid-a",))
    assert second.state.queue == ("uid-a",)
    assert second.state.pending["uid-a"].since == 1


def test_an_infeasible_resize_is_dropped() -> None:
    """RSZ-6."""
    pods = {"uid-a": _desired("a", "2")}
    outcome = _evaluated(_queue(_state("a"), pods), pods, _INFEASIBLE)

    assert outcome.state.queue == ()
    assert outcome.state.pending["uid-a"].reason == "Infeasible"
    assert [event.reason for event in outcome.events] == ["ResizeInfeasible"]


def test_what_equals_its_allocation_is_pending_no_more() -> None:
    """RES-3."""
    pods = {"uid-a": _desired("a", "2")}
    deferred = _evaluated(_queue(_state("a"), pods), pods, _DEFERRED)
    back = _evaluated(deferred.state, {"uid-a": _desired("a", "1")}, _DEFERRED)

    assert (back.state.queue, dict(back.state.pending)) == ((), {})
    assert (back.events, back.synced) == ((), ())


def test_nothing_is_looked_at_before_sources_are_ready() -> None:
    """RES-3, MERGE-6."""
    pods = {"uid-a": _desired("a", "2")}
    state = _queue(_state("a"), pods)

    def ask(_: AdmitPod, __: Sequence[AdmitPod], ___: PodAllocation | None) -> Verdict:
        raise AssertionError

    assert evaluated(state, pods, ask, 0, _RESIZE, sources_ready=False) == Evaluated(state=state)


def test_others_are_shown_as_admitted() -> None:
    """ADM-6."""
    pods = {"uid-a": _desired("a", "2"), "uid-b": _desired("b", "3")}
    seen: list[AdmitPod] = []

    def ask(_: AdmitPod, others: Sequence[AdmitPod], __: PodAllocation | None) -> Verdict:
        seen.extend(others)
        return ADMITTED

    state = queued(_state("a", "b"), "uid-a", pods, _RESIZE, FeatureGates())
    evaluated(state, pods, ask, 0, _RESIZE)

    assert [other.pod for other in seen] == [pod("b", requests={"cpu": "1"}).pod]


def test_an_answer_at_a_time_gives_what_an_evaluation_gives() -> None:
    """RES-3: whoever asks the chain elsewhere takes its answers over one by one."""
    pods = {p.uid: p for p in (_desired("a", "2"), _desired("b", "3"))}
    state = _queue(_state("a", "b"), pods)
    for verdict in (_DEFERRED, _INFEASIBLE, ADMITTED):
        after = state
        events: list[ResizeEvent] = []
        synced: list[str] = []
        for uid in state.queue:
            outcome = answered(after, pods[uid], verdict, 7, _RESIZE)
            after = outcome.state
            events += outcome.events
            synced += outcome.synced

        whole = _evaluated(state, pods, verdict, 7)
        assert whole == Evaluated(state=after, events=tuple(events), synced=tuple(synced))


def test_what_there_is_nothing_to_do_about_leaves_the_queue() -> None:
    """RES-1, RES-3."""
    pods = {p.uid: p for p in (_desired("a", "2"), _desired("b", "1"))}
    state = _evaluated(_queue(_state("a", "b"), pods), pods, _DEFERRED).state

    assert [uid for uid in pods if is_pending(state, pods[uid], _RESIZE)] == ["uid-a"]
    assert state.queue == ("uid-a",)
    left = settled(state, "uid-a")
    assert (left.queue, left.pending) == ((), {})
