"""Additions, updates, removals and reconciliations (ADD, HND) over parts that write down."""

# ruff: noqa: ARG002 - arguments are those of what it stands in for

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.agent.made import container, pod

from numalign_agent.changes import Operation, PodChange
from numalign_agent.journal.rows import PodRow
from numalign_agent.pod import CONFIG_MIRROR, AgentPod
from numalign_agent.pods.handlers import PodHandlers, Surroundings
from numalign_agent.pods.manager import PodManager
from numalign_agent.status.cache import StatusCache
from numalign_agent.workers.work import PodWork, Update, UpdateKind, accept, first_work

DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
EVICTED = {"phase": "Failed", "reason": "Evicted"}


class World:
    """Stands in for workers, admitter, journal and resizes."""

    def __init__(self) -> None:
        self.did: list[Any] = []
        self.pods = PodManager()
        self.cache = StatusCache([])
        self.working: dict[str, PodWork] = {}
        self.undecided: set[str] = set()
        self.rows: dict[str, PodRow] = {}
        self.ready = True
        self.running: set[str] = set()
        self.handlers = PodHandlers(
            self.pods,
            self,  # type: ignore[arg-type]
            Admitting(self),  # type: ignore[arg-type]
            self.cache,
            self,  # type: ignore[arg-type]
            Resizing(self),
            Surroundings(
                sources_ready=lambda: self.ready,
                runs=lambda uid: uid in self.running,
                remove_dead=lambda uid: self.did.append(("remove dead", uid)),
                release_soon=lambda: self.did.append("release soon"),
            ),
        )

    def handle(self, operation: Operation, *pods: AgentPod) -> list[Any]:
        self.did.clear()
        self.handlers.handle(PodChange(operation, "file", pods))
        return self.did

    def work(self, uid: str) -> PodWork | None:
        return self.working.get(uid)

    def update(self, update: Update) -> None:
        self.did.append((update.kind.value, update.pod.uid, update.pod.phase))

    def row(self, uid: str) -> PodRow | None:
        return self.rows.get(uid)

    def with_worker(self, of: AgentPod) -> AgentPod:
        self.pods.put(of)
        self.working[of.uid] = first_work(Update(UpdateKind.CREATE, of), 1.0, runtime_idle=True)
        return of


class Admitting:
    def __init__(self, world: World) -> None:
        self._world = world

    def add(self, uids: Sequence[str]) -> None:
        if uids:
            self._world.did.append(("ask", *uids))

    def forget(self, uid: str) -> None:
        self._world.did.append(("forget", uid))

    def wake(self, uid: str) -> None:
        self._world.did.append(("wake", uid))

    def is_undecided(self, uid: str) -> bool:
        return uid in self._world.undecided


class Resizing:
    def __init__(self, world: World) -> None:
        self._world = world

    def updated(self, pod: AgentPod, before: AgentPod | None) -> None:
        self._world.did.append(("updated", pod.uid, before is not None))

    def removed(self, pod_uids: Sequence[str]) -> None:
        self._world.did.append(("removed", *pod_uids))

    def reconciled(self, pod: AgentPod, before: AgentPod | None) -> None:
        self._world.did.append(("reconciled", pod.uid))


@pytest.fixture
def world() -> World:
    return World()


def mirror_of(name: str) -> AgentPod:
    return pod(name).annotated(**{CONFIG_MIRROR: "h"}).replacing("metadata", uid=f"m-{name}")


def test_a_batch_is_asked_about_in_order_of_creation(world: World) -> None:
    """ADD-1."""
    did = world.handle(
        Operation.ADD,
        pod("young", created="2026-01-02T00:00:00Z"),
        pod("old", created="2026-01-01T00:00:00Z"),
        pod("static", source="file"),
    )

    assert did == [("ask", "uid-static", "uid-old", "uid-young")]
    assert set(world.pods.pods) == {"uid-static", "uid-old", "uid-young"}


def test_a_pod_that_is_brought_back_while_it_ends_is_begun_anew(world: World) -> None:
    """WRK-8: its worker has to know, or it is never looked at again."""
    back = world.with_worker(pod("web", source="file"))
    world.working[back.uid] = accept(world.working[back.uid], Update(UpdateKind.KILL, back), 2.0)[0]

    assert world.handle(Operation.ADD, back) == [("create", back.uid, ""), ("ask", back.uid)]


def test_an_empty_batch_is_no_error(world: World) -> None:
    """Trap 2."""
    assert world.handle(Operation.ADD) == []


def test_a_mirror_pod_is_never_asked_about(world: World) -> None:
    """ADD-1, MIR-4, trap 34."""
    assert world.handle(Operation.ADD, mirror_of("web")) == []

    world.with_worker(pod("web", source="file"))
    assert world.handle(Operation.ADD, mirror_of("web")) == [("update", "uid-web", "")]


@pytest.mark.parametrize(
    ("row", "did"),
    [
        pytest.param(
            {"verdict": "rejected", "status": {"phase": "Failed"}}, [], id="rejected: for good"
        ),
        pytest.param(
            {"verdict": "admitted", "status": {"phase": "Succeeded"}},
            [("create", "uid-a", "Succeeded")],
            id="over: not started again",
        ),
        pytest.param(
            {"verdict": "admitted", "status": {"phase": "Running"}},
            [("ask", "uid-a")],
            id="it ran: asked about again",
        ),
    ],
)
def test_what_the_journal_knows_after_a_restart(
    world: World, row: dict[str, Any], did: list[Any]
) -> None:
    world.rows["uid-a"] = PodRow(uid="uid-a", namespace="default", name="a", **row)
    world.cache.restore({"uid-a": row["status"]})

    assert world.handle(Operation.ADD, pod("a", source="file")) == did


@pytest.mark.parametrize("operation", [Operation.UPDATE, Operation.DELETE])
def test_an_update_never_passes_admission(world: World, operation: Operation) -> None:
    """HND-1, trap 1."""
    world.with_worker(pod("a"))
    changed = pod("a", metadata=DELETED)

    assert world.handle(operation, changed) == [("updated", "uid-a", True), ("update", "uid-a", "")]
    assert world.pods.pod("uid-a") == changed


def test_an_update_does_not_overtake_the_addition(world: World) -> None:
    """DES-11."""
    world.handle(Operation.ADD, pod("a"))
    world.undecided = {"uid-a"}
    changed = pod("a", container("other"))

    assert world.handle(Operation.UPDATE, changed) == [("wake", "uid-a")]
    assert world.pods.pod("uid-a") == changed


def test_an_update_of_a_rejected_pod_makes_no_worker(world: World) -> None:
    """ADD-5."""
    world.pods.put(pod("a"))
    world.cache.set(pod("a"), {"phase": "Failed"})

    assert world.handle(Operation.UPDATE, pod("a")) == [("updated", "uid-a", True)]


def test_a_removal_ends_the_pod(world: World) -> None:
    """HND-3."""
    world.with_worker(pod("a"))

    assert world.handle(Operation.REMOVE, pod("a")) == [
        ("forget", "uid-a"),
        ("kill", "uid-a", ""),
        ("removed", "uid-a"),
        "release soon",
    ]
    assert world.pods.pod("uid-a") is None


def test_nothing_is_ended_before_all_sources_are_ready(world: World) -> None:
    """HND-4, trap 20."""
    world.ready = False
    world.with_worker(pod("a"))

    assert ("kill", "uid-a", "") not in world.handle(Operation.REMOVE, pod("a"))


def test_a_pod_that_runs_without_worker_is_ended_too(world: World) -> None:
    world.pods.put(pod("a"))
    world.running = {"uid-a"}

    assert ("kill", "uid-a", "") in world.handle(Operation.REMOVE, pod("a"))


def test_a_mirror_pod_that_is_removed_is_made_again(world: World) -> None:
    """HND-3, MIR-6."""
    static = world.with_worker(pod("web", source="file"))
    world.pods.put(mirror_of("web"))
    did = world.handle(Operation.REMOVE, mirror_of("web"))

    assert ("update", static.uid, "") in did
    assert ("kill", static.uid, "") not in did


def test_an_echo_of_the_status_is_no_sync(world: World) -> None:
    """HND-5, trap 16."""
    world.with_worker(pod("a"))

    assert world.handle(Operation.RECONCILE, pod("a")) == [("reconciled", "uid-a")]


def test_a_pod_that_is_over_as_somebody_else_says_is_looked_at(world: World) -> None:
    world.with_worker(pod("a"))
    over = pod("a", status={"phase": "Succeeded"})

    assert ("sync", "uid-a", "Succeeded") in world.handle(Operation.RECONCILE, over)
    world.working["uid-a"] = first_work(Update(UpdateKind.KILL, over), 1.0, runtime_idle=False)
    assert ("sync", "uid-a", "Succeeded") not in world.handle(Operation.RECONCILE, over)


def test_a_deletion_may_be_finished_when_the_status_is_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """STAT-4."""
    rechecked: list[str] = []
    monkeypatch.setattr(world.cache, "recheck", rechecked.append)
    world.handle(Operation.RECONCILE, pod("a"), pod("b", metadata=DELETED))

    assert rechecked == ["uid-b"]


def test_readiness_gates_that_differ_are(world: World) -> None:
    gated = pod("a", readinessGates=[{"conditionType": "x"}])
    world.with_worker(gated)
    own = {"conditions": [{"type": "ContainersReady", "status": "True"}]}
    world.cache.set(gated, own)

    assert ("sync", "uid-a", "") in world.handle(Operation.RECONCILE, gated)


def test_an_evicted_pod_loses_its_dead_containers(world: World) -> None:
    world.with_worker(pod("a"))

    assert ("remove dead", "uid-a") in world.handle(Operation.RECONCILE, pod("a", status=EVICTED))


@pytest.mark.parametrize(
    ("of", "skipped"),
    [
        (pod("a"), False),
        (pod("a", metadata=DELETED), True),
        (pod("a", status={"phase": "Succeeded"}), True),
    ],
)
def test_who_is_not_asked_about(world: World, of: AgentPod, skipped: bool) -> None:
    """ADM-9."""
    assert world.handlers.is_skipped(of) is skipped
