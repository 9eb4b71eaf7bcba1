"""Which pods providers are told are active."""

from __future__ import annotations

from numalign.model.ids import PodUid
from numalign.topology.picture import Picture
from numalign.v1 import types_pb2 as pb

A, B = PodUid("a"), PodUid("b")


def test_a_trusted_record_alone_decides() -> None:
    picture = Picture(recorded=[A], waits_for_sources=False)
    assert picture.sources_ready
    picture.heard("kubelet", [B], (), ready=False)
    assert picture.active == {A}
    assert picture.sources_ready
    picture.admitted(B)
    picture.gone(A)
    assert picture.active == {B}


def test_where_pods_are_judged_again_agents_say_who_is_active() -> None:
    picture = Picture(recorded=[A], waits_for_sources=True)
    assert picture.active == frozenset()
    assert not picture.sources_ready
    picture.heard("kubelet", [B], (), ready=True)
    assert picture.active == {B}
    assert picture.sources_ready


def test_running_containers_are_the_last_word_of_each_owner() -> None:
    picture = Picture(recorded=[], waits_for_sources=False)
    one, two = (pb.RunningContainer(container_id=name) for name in ("one", "two"))
    picture.heard("kubelet", [], (one,), ready=True)
    picture.heard("run", [], (two,), ready=True)
    assert list(picture.running) == [one, two]
    picture.heard("kubelet", [], (), ready=True)
    assert list(picture.running) == [two]
