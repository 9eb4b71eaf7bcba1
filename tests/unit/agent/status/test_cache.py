"""STAT-1: who hears of a status, and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.unit.agent.made import pod

from numalign_agent.pod import AgentPod
from numalign_agent.status.cache import StatusCache
from numalign_agent.status.port import EventType


class Listener:
    def __init__(self) -> None:
        self.heard: list[Any] = []

    def set_status(self, pod: AgentPod, status: Mapping[str, Any]) -> None:
        self.heard.append(("status", pod.uid, status["phase"]))

    def event(self, pod: AgentPod, kind: EventType, reason: str, message: str) -> None:
        self.heard.append(("event", pod.uid, kind.value, reason, message))

    def forget(self, pod_uid: str) -> None:
        self.heard.append(("forget", pod_uid))

    def recheck(self, pod_uid: str) -> None:
        self.heard.append(("recheck", pod_uid))

    async def run(self) -> None: ...


def test_only_changes_are_told() -> None:
    first, second = Listener(), Listener()
    cache = StatusCache([first])
    cache.tell(second)

    assert cache.set(pod("a"), {"phase": "Running"})
    assert not cache.set(pod("a"), {"phase": "Running"})
    cache.event(pod("a"), EventType.WARNING, "R", "m")
    cache.recheck("uid-a")

    assert first.heard == second.heard
    assert first.heard == [
        ("status", "uid-a", "Running"),
        ("event", "uid-a", "Warning", "R", "m"),
        ("recheck", "uid-a"),
    ]


def test_a_pod_that_is_being_deleted_is_told_of_again() -> None:
    listener = Listener()
    cache = StatusCache([listener])
    of = pod("a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    cache.set(of, {"phase": "Running"})
    cache.set(of, {"phase": "Running"})

    assert len(listener.heard) == 2


def test_what_is_restored_is_known_and_what_is_gone_forgotten() -> None:
    listener = Listener()
    cache = StatusCache([listener])
    cache.restore({"a": {"phase": "Failed"}, "b": {"phase": "Running"}})

    assert [cache.is_terminal(uid) for uid in "abc"] == [True, False, False]
    cache.forget_all_but({"b"})
    assert listener.heard == [("forget", "a")]
    assert cache.get("a") == {}
