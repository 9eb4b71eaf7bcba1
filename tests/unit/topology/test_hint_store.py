"""Chosen hints by container, and container ids (TM-50, TM-51)."""

from __future__ import annotations

from numalign.model.hint import NO_HINT, TopologyHint
from numalign.model.ids import PodUid
from numalign.model.numa_mask import NumaMask
from numalign.topology.hint_store import HintStore

POD = PodUid("pod")
NEAR, FAR = TopologyHint(NumaMask(1), True), TopologyHint(NumaMask(3), False)


def store() -> HintStore:
    hints = HintStore()
    hints.put(POD, {"a": NEAR, "b": FAR})
    return hints


def test_what_was_put_is_there_and_anything_else_is_no_hint() -> None:
    hints = store()
    assert hints.get(POD, "a") == NEAR
    assert hints.get(POD, "c") == NO_HINT
    assert hints.get(PodUid("other"), "a") == NO_HINT
    hints.put(POD, {"a": FAR})
    assert (hints.get(POD, "a"), hints.get(POD, "b")) == (FAR, FAR)


def test_a_hint_goes_with_the_last_id_of_its_container() -> None:
    hints = store()
    hints.add_container("id1", POD, "a")
    hints.add_container("id2", POD, "a")
    assert hints.remove_container("id1") == (POD, "a")
    assert hints.get(POD, "a") == NEAR
    assert hints.remove_container("id2") == (POD, "a")
    assert hints.get(POD, "a") == NO_HINT
    assert hints.get(POD, "b") == FAR


def test_an_unknown_id_is_no_error() -> None:
    assert store().remove_container("nobody") is None


def test_a_pod_goes_with_its_ids() -> None:
    hints = store()
    hints.add_container("id", POD, "a")
    assert hints.containers_of(POD) == {"a"}
    hints.drop_pod(POD)
    assert hints.get(POD, "b") == NO_HINT
    assert hints.containers_of(POD) == frozenset()
    assert hints.remove_container("id") is None
