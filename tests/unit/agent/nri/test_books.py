"""What is known: both pictures side by side, and whose containers are whose."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.agent.nri.made_up import OWNER, container, record, sandbox

from numalign.model.cpu_set import CpuSet
from numalign_agent.nri.books import Books
from numalign_agent.nri.ownership import Ownership
from numalign_agent.nri.plan.pinning import Pinning
from numalign_agent.nri.plan.standing import Standing

ALL = CpuSet.parse("0-3")


def books(ownership: Ownership | None = None) -> Books:
    found = Books(OWNER, ownership or Ownership(None))
    found.pool_is(ALL)
    return found


def told(found: Books) -> dict[str, str]:
    return {update.container_id: str(update.pinning.cpus) for update in found.pending()}


def test_a_container_of_a_pod_that_waits_runs_in_the_shared_pool() -> None:
    known = books()
    known.see_container(sandbox("a"), container("a"))

    assert told(known) == {"a-app-0": "0-3"}
    assert [pod.name for pod in known.waiting()] == ["a"]


def test_a_record_moves_its_own_container_and_all_shared_ones() -> None:
    known = books()
    for pod in ("a", "b"):
        known.see_container(sandbox(pod), container(pod))
        known.recorded(f"uid-{pod}", record(app=""))
    known.see_container(sandbox("c"), container("c"))
    known.recorded("uid-c", record(revision=2, app="2-3"))

    assert known.shared == CpuSet.parse("0-1")
    assert told(known) == {"a-app-0": "0-1", "b-app-0": "0-1", "c-app-0": "2-3"}


def test_what_it_has_set_itself_it_may_change() -> None:
    ownership = Ownership(None)
    ownership.add("a-app-0")
    known = books(ownership)
    known.see_container(sandbox("a"), container("a", cpus="0-3"))
    known.recorded("uid-b", record(app="3"))

    assert told(known) == {"a-app-0": "0-2"}


@pytest.mark.parametrize(
    ("new", "recorded", "foreign"),
    [
        pytest.param(False, "", True, id="nobody-knows-it"),
        pytest.param(False, OWNER, False, id="a-record-says-that-it-is-ours"),
        pytest.param(False, "run", True, id="a-record-of-another-owner"),
        pytest.param(True, OWNER, True, id="the-kubelet-has-set-it"),
    ],
)
def test_whose_cpus_are_set(new: bool, recorded: str, foreign: bool) -> None:
    known = books()
    if recorded:
        known.recorded("uid-a", record(owner=recorded, app="2"))
    found = known.see_container(sandbox("a"), container("a", cpus="1"), new=new)

    assert found.foreign is foreign
    assert [c.id for _, c in known.live()] == ([] if foreign else ["a-app-0"])


def test_a_pod_of_another_owner_is_left_alone() -> None:
    known = books()
    pod = known.see_sandbox(sandbox("a"))
    known.see_container(sandbox("a"), container("a"))
    known.recorded("uid-a", record(owner="run", app="2"))

    assert known.standing(pod) is Standing.FOREIGN
    assert told(known) == {}


def test_what_was_told_is_not_told_again() -> None:
    known = books()
    known.see_container(sandbox("a"), container("a"))
    (update,) = known.pending()
    known.given(update.container_id, update.pinning)
    known.see_container(sandbox("a"), container("a", cpus="0-3"))

    assert told(known) == {}


def test_what_the_kernel_says_is_not_forgotten_when_the_runtime_repeats_itself() -> None:
    known = books()
    found = known.see_container(sandbox("a"), container("a"))
    known.given(found.id, Pinning(ALL))
    found.given = Pinning(CpuSet.parse("1"))
    known.see_container(sandbox("a"), container("a", cpus="0-3"))

    assert told(known) == {"a-app-0": "0-3"}


def test_somebody_changes_a_container_through_the_runtime() -> None:
    known = books()
    found = known.see_container(sandbox("a"), container("a"))
    known.given(found.id, Pinning(ALL))
    known.see_container(sandbox("a"), container("a", cpus="1"))

    assert told(known) == {"a-app-0": "0-3"}


def test_a_pod_rests_when_its_last_sandbox_stops_and_goes_when_it_is_removed() -> None:
    known = books()
    pod = known.see_sandbox(sandbox("a"))
    known.see_sandbox(sandbox("a", attempt=1))
    known.see_container(sandbox("a", attempt=1), container("a", attempt=1))
    known.recorded("uid-a", record(app="2"))
    known.sandbox_stopped("sandbox-a-0", 1.0)
    one_is_up = pod.rests_since
    known.sandbox_stopped("sandbox-a-1", 2.0)
    rests = known.resting()
    first = known.sandbox_removed("sandbox-a-0")
    last = known.sandbox_removed("sandbox-a-1")

    assert one_is_up is None
    assert pod.rests_since == 2.0
    assert rests == (pod,)
    assert (first, last) == (None, pod)
    assert known.pods() == ()


def test_a_new_sandbox_ends_the_rest() -> None:
    known = books()
    pod = known.see_sandbox(sandbox("a"))
    known.sandbox_stopped("sandbox-a-0", 1.0)
    known.see_sandbox(sandbox("a", attempt=1))

    assert pod.rests_since is None
    assert known.active_uids() == ("uid-a",)


def test_a_picture_replaces_what_is_not_in_it() -> None:
    known = books()
    for pod in ("gone", "stays"):
        known.see_container(sandbox(pod), container(pod))
    gone = known.synchronize(
        [sandbox("stays"), sandbox("ended", pid=0), sandbox("new")],
        [container("stays"), container("new"), container("of-no-sandbox")],
        now=5.0,
    )
    pods = {pod.name: pod for pod in known.pods()}

    assert [pod.name for pod in gone] == ["gone"]
    assert set(pods) == {"stays", "ended", "new"}
    assert pods["ended"].rests_since == 5.0
    assert pods["stays"].rests_since is None
    assert {c.id for _, c in known.live()} == {"stays-app-0", "new-app-0"}


def test_an_event_goes_before_a_picture_that_is_behind() -> None:
    """A runtime lists a pod or container a moment after it has told of it."""
    ownership = Ownership(None)
    known = books(ownership)
    known.see_container(sandbox("new"), container("new"), new=True)
    ownership.add("new-app-0")
    known.recorded("uid-new", record(app="3"))
    known.heard.begun("sandbox-new-0", 100.0)
    known.heard.begun("new-app-0", 100.0)
    gone = known.synchronize([], [], now=101.0)
    kept, doubtful = [pod.name for pod in known.pods()], known.doubtful
    later = known.synchronize([], [], now=140.0)

    assert (gone, kept, doubtful) == ((), ["new"], True)
    assert [pod.name for pod in later] == ["new"]
    assert not known.doubtful


def test_an_end_goes_before_a_picture_that_is_behind() -> None:
    known = books()
    for id_ in ("sandbox-old-0", "other-app-0"):
        known.heard.ended(id_, 100.0)
    picture = [sandbox("old"), sandbox("other")], [container("old"), container("other")]
    known.synchronize(*picture, now=101.0)
    at_once = {pod.name for pod in known.pods()}, [c.id for _, c in known.live()]
    known.synchronize(*picture, now=140.0)

    assert at_once == ({"other"}, [])
    assert {pod.name for pod in known.pods()} == {"old", "other"}


def test_a_runtime_that_tells_no_process_tells_no_end() -> None:
    known = books()
    known.synchronize([sandbox("a", pid=0)], [], now=5.0)

    assert known.pods()[0].rests_since is None


@pytest.mark.parametrize(
    ("revision", "kept"),
    [pytest.param(4, True, id="older-news"), pytest.param(5, False, id="newer-news")],
)
def test_older_news_do_not_count(revision: int, kept: bool) -> None:
    known = books()
    known.recorded("uid-a", record(revision=5, app="2"))
    known.recorded("uid-a", record(revision=3, app="1"))
    known.released("uid-a", revision)

    assert known.is_recorded("uid-a") is kept


def test_an_admission_that_starts_over_is_believed() -> None:
    known = books()
    known.recorded("uid-a", record(revision=500, app="2"))
    known.admission_started_over()
    known.recorded("uid-a", record(revision=1, app="1"))

    assert known.shared is None
    pod = known.see_sandbox(sandbox("a"))
    assert known.wanted(pod, "app") == Pinning(CpuSet.parse("1"), exclusive=True)


def test_the_oldest_waits_first() -> None:
    known = books()
    for name, age in (("young", 30), ("old", 10), ("between", 20)):
        known.see_container(sandbox(name), container(name, age=age))

    assert [pod.name for pod in known.waiting()] == ["old", "between", "young"]


def test_creation_of_the_pod_goes_before_that_of_its_container() -> None:
    known = books()
    for name, age, created in (
        ("a", 10, "2026-01-02T00:00:00Z"),
        ("b", 20, "2026-01-01T00:00:00Z"),
    ):
        known.see_container(sandbox(name), container(name, age=age))
        known.see_sandbox(sandbox(name)).document = {"metadata": {"creationTimestamp": created}}

    assert [pod.name for pod in known.waiting()] == ["b", "a"]


def test_an_idle_pod_is_looked_into_less_and_less_often() -> None:
    known = books()
    known.see_container(sandbox("a"), container("a"))
    busy = known.idle(0, 10)
    known.container_gone("a-app-0")
    due = [now for now in range(0, 200, 5) if known.idle(now, 10)]
    known.see_container(sandbox("a"), container("a", "again"))

    assert busy == ()
    assert due == [10, 30, 70, 150]
    assert known.idle(1000, 10) == ()


def test_ownership_outlives_the_plugin(tmp_path: Path) -> None:
    path = tmp_path / "containers.json"
    first = Ownership(path)
    first.add("one", "two")
    first.add("three")
    first.keep_only({"one", "three", "other"})
    again = Ownership(path)

    assert [again.has(name) for name in ("one", "two", "three")] == [True, False, True]


def test_of_another_boot_nothing_is_owned(tmp_path: Path) -> None:
    path = tmp_path / "containers.json"
    Ownership(path, "boot-1").add("one")

    assert Ownership(path, "boot-1").has("one")
    assert not Ownership(path, "boot-2").has("one")


@pytest.mark.parametrize("writable", [True, False], ids=["moved", "kept-if-it-cannot-be"])
def test_what_was_kept_elsewhere_is_taken_over(tmp_path: Path, writable: bool) -> None:
    before, path = tmp_path / "before.json", tmp_path / "state" / "containers.json"
    before.write_text('{"containers": ["one"]}')
    if writable:
        path.parent.mkdir()
    ownership = Ownership(path, "boot-1", before)
    again = Ownership(path, "boot-1", before)

    assert [ownership.has("one"), again.has("one")] == [True, True]
    assert before.exists() is not writable


def test_what_was_kept_elsewhere_is_older(tmp_path: Path) -> None:
    before, path = tmp_path / "before.json", tmp_path / "containers.json"
    before.write_text('{"containers": ["one"]}')
    Ownership(path, "boot-1").add("two")
    ownership = Ownership(path, "boot-1", before)

    assert [ownership.has("one"), ownership.has("two")] == [False, True]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"containers": 5}', '{"other": []}'])
def test_ownership_that_cannot_be_read_owns_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "containers.json"
    path.write_text(text)
    ownership = Ownership(path)
    ownership.add("one")

    assert Ownership(path).has("one")


def test_ownership_that_cannot_be_written_is_remembered(tmp_path: Path) -> None:
    ownership = Ownership(tmp_path / "nowhere" / "containers.json")
    ownership.add("one")

    assert ownership.has("one")
