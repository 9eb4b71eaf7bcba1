"""Pending resizes: who waits, in which order, and what an answer changes (RES, HND-1, HND-2)."""

# ruff: noqa: ARG002 - arguments are those of what it stands in for

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.agent.admitting.admission_double import (
    ADMITTED,
    AdmissionDouble,
    deferred,
    down,
)
from tests.unit.agent.made import container, pod

from numalign.kubelet_files.allocation_checkpoint import AllocatedResources, PodAllocation
from numalign.model.feature_gates import FeatureGates
from numalign.model.quantity import Quantity
from numalign.telemetry.metrics import Metrics
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb
from numalign_agent.metrics import AGENT
from numalign_agent.pod import AgentPod
from numalign_agent.pods.manager import PodManager
from numalign_agent.resizes.book import ResizeBook
from numalign_agent.resizes.pending import PendingResizes, ResizeParts
from numalign_agent.resizes.reading import changed_amounts, with_allocated
from numalign_agent.status.cache import StatusCache
from numalign_agent.status.port import EventType


def sized(name: str, cpu: str, memory: str = "1Gi", **fields: Any) -> AgentPod:
    amounts = {"cpu": cpu, "memory": memory}
    return pod(name, container("c", resources={"requests": amounts}), **fields)


def infeasible() -> ad.AdmitResponse:
    return ad.AdmitResponse(
        verdict=pb.VERDICT_REJECTED,
        reason="Infeasible",
        handler_reason="Infeasible",
        message="never",
    )


def later() -> ad.AdmitResponse:
    answer = deferred(180)
    answer.reason, answer.handler_reason = "Deferred", "OutOfcpu"
    answer.message = "not now"
    return answer


class Told:
    def __init__(self) -> None:
        self.events: list[str] = []

    def set_status(self, pod: AgentPod, status: Any) -> None: ...

    def event(self, pod: AgentPod, kind: EventType, reason: str, message: str) -> None:
        self.events.append(f"{pod.name} {kind.value} {reason}")

    def forget(self, pod_uid: str) -> None: ...

    def recheck(self, pod_uid: str) -> None: ...

    async def run(self) -> None: ...


class World:
    def __init__(self) -> None:
        self.calls = AdmissionDouble()
        self.pods = PodManager()
        self.told = Told()
        self.looked: list[str] = []
        self.granted: list[str] = []
        self.ended: list[str] = []
        self.ready = True
        self.metrics = Metrics(AGENT, enabled=True)
        self.book = ResizeBook(FeatureGates(), lambda: 1000.0)
        self.resizes = PendingResizes(
            ResizeParts(
                book=self.book,
                calls=self.calls,  # type: ignore[arg-type]
                preemption=self,  # type: ignore[arg-type]
                pods=self.pods,
                cache=StatusCache([self.told]),
                turn=asyncio.Lock(),
                look=self.looked.extend,
                granted=lambda uid, _: self.granted.append(uid),
                sources_ready=lambda: self.ready,
                metrics=self.metrics,
            )
        )

    async def end(self, victims: Any) -> None:
        self.ended += [victim.pod_uid for victim in victims]

    def admit(self, of: AgentPod, answer: ad.AdmitResponse = ADMITTED) -> AgentPod:
        self.pods.put(of)
        self.resizes.admitted(of, of, answer)
        return of

    def update(self, after: AgentPod) -> None:
        before = self.pods.pod(after.uid)
        self.pods.put(after)
        self.resizes.updated(after, before)


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        (("1", "1Gi"), ("2", "1Gi"), [("cpu", "requests", "increase")]),
        (("2", "1Gi"), ("1", "512Mi"), [
            ("cpu", "requests", "decrease"), ("memory", "requests", "decrease"),
        ]),
        (("1000m", "1Gi"), ("1", "1024Mi"), []),
    ],
)  # fmt: skip
def test_what_of_a_change_is_a_resize(
    before: tuple[str, str], after: tuple[str, str], changes: list[Any]
) -> None:
    """HND-2."""
    assert changed_amounts(sized("a", *before), sized("a", *after)) == changes


def test_amounts_that_come_and_go() -> None:
    none = pod("a", container("c"))

    assert changed_amounts(none, sized("a", "1"))[0] == ("cpu", "requests", "add")
    assert changed_amounts(sized("a", "1"), none)[0] == ("cpu", "requests", "remove")


async def test_a_resize_that_is_granted() -> None:
    on = World()
    on.admit(sized("a", "1"))
    on.update(sized("a", "2"))
    assert list(on.book.queue) == ["uid-a"]
    await on.resizes.evaluate("pod_updated")

    assert on.calls.asked == [("resize", "uid-a")]
    assert on.told.events == ["a Normal ResizeStarted"]
    assert on.looked == on.granted == ["uid-a"]
    assert on.book.allocated("uid-a")["c"]["requests"] == {"cpu": "2", "memory": "1Gi"}
    assert [c["type"] for c in on.book.conditions("uid-a")] == ["PodResizeInProgress"]
    on.book.actuated("uid-a")
    assert on.book.conditions("uid-a") == []
    assert list(on.book.queue) == []
    count = 'kubelet_container_requested_resizes_total{operation="increase",requirement="requests"'
    assert count in on.metrics.text()


def requests_of(of: AgentPod) -> Any:
    return of.spec["containers"][0]["resources"]["requests"]


async def test_a_pod_runs_with_what_it_is_allocated() -> None:
    """RES-4: a resize that waits changes nothing of what containers are made with."""
    on = World()
    first = on.admit(sized("a", "1"))
    assert on.book.allocated_form(first) is first
    wanted = sized("a", "9")
    on.update(wanted)
    on.calls.answers("uid-a", later(), ADMITTED)
    await on.resizes.evaluate("pod_updated")
    while_it_waits = on.book.allocated_form(wanted)
    await on.resizes.evaluate("pods_removed")

    assert requests_of(while_it_waits) == {"cpu": "1", "memory": "1Gi"}
    assert requests_of(wanted)["cpu"] == "9"
    assert on.book.allocated_form(wanted) is wanted


def test_a_pod_that_nobody_has_admitted_stands_for_itself() -> None:
    unknown = sized("a", "1")

    assert World().book.allocated_form(unknown) is unknown


def test_amounts_are_put_in_for_every_container_and_for_the_pod() -> None:
    whole = pod(
        "a",
        container("c", resources={"requests": {"cpu": "9"}, "claims": [{"name": "gpu"}]}),
        initContainers=[container("i", resources={"limits": {"cpu": "9"}}), container("j")],
        resources={"limits": {"cpu": "9"}},
    )
    one = {"cpu": Quantity.parse("1")}
    shown = with_allocated(
        whole,
        PodAllocation(
            containers={
                "c": AllocatedResources(requests=one),
                "i": AllocatedResources(limits=one, requests=one),
            },
            pod_level=AllocatedResources(requests=one),
        ),
    ).spec

    assert shown["containers"][0]["resources"] == {
        "claims": [{"name": "gpu"}],
        "requests": {"cpu": "1"},
    }
    assert [c.get("resources") for c in shown["initContainers"]] == [
        {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
        None,
    ]
    assert shown["resources"] == {"requests": {"cpu": "1"}}


async def test_a_resize_that_has_to_wait_is_asked_about_again() -> None:
    """RES-3: one event, although its condition is told again."""
    on = World()
    on.admit(sized("a", "1"))
    on.update(sized("a", "9"))
    on.calls.answers("uid-a", later(), later(), ADMITTED)
    for _ in range(2):
        await on.resizes.evaluate("pod_updated")
    (condition,) = on.book.conditions("uid-a")

    assert on.told.events == ["a Warning ResizeDeferred"]
    assert (condition["type"], condition["reason"]) == ("PodResizePending", "Deferred")
    assert on.looked == ["uid-a", "uid-a"]
    assert list(on.book.queue) == ["uid-a"]

    await on.resizes.evaluate("pods_removed")
    assert list(on.book.queue) == []
    counted = 'kubelet_pod_deferred_accepted_resizes_total{retry_trigger="pods_removed"} 1.0'
    assert counted in on.metrics.text()


async def test_a_resize_that_can_never_be_granted_is_dropped() -> None:
    on = World()
    on.admit(sized("a", "1"))
    on.update(sized("a", "999"))
    on.calls.answers("uid-a", infeasible())
    await on.resizes.evaluate("pod_updated")

    assert list(on.book.queue) == []
    assert on.told.events == ["a Warning ResizeInfeasible"]
    assert [c["reason"] for c in on.book.conditions("uid-a")] == ["Infeasible"]

    on.update(sized("a", "1"))  # taken back
    assert on.book.conditions("uid-a") == []


async def test_order() -> None:
    """RES-2: what raises nothing first, then priority, then Guaranteed."""
    on = World()
    extra: tuple[tuple[str, dict[str, Any]], ...] = (
        ("up", {}),
        ("high", {"priority": 5}),
        ("down", {}),
    )
    for name, fields in extra:
        on.admit(sized(name, "4", **fields))
    on.update(sized("up", "5"))
    on.update(sized("high", "5", priority=5))
    on.update(sized("down", "3"))

    assert on.book.queue == ("uid-down", "uid-high", "uid-up")


async def test_a_pod_that_was_changed_while_nobody_looked() -> None:
    """ADD-2: it is admitted with what it is allocated, and its resize waits."""
    on = World()
    answer = ad.AdmitResponse(verdict=pb.VERDICT_ADMITTED, resize_pending=True)
    entry = answer.resources.containers.add(container="c")
    entry.amounts.requests.update({"cpu": "1", "memory": "1Gi"})
    pending = {
        "type": "PodResizePending",
        "status": "True",
        "reason": "Deferred",
        "message": "not now",
        "lastTransitionTime": "1970-01-01T00:00:42Z",
    }
    on.admit(sized("a", "2", status={"conditions": [pending]}), answer)

    assert list(on.book.queue) == ["uid-a"]
    (restored,) = on.book.conditions("uid-a")
    assert (restored["reason"], restored["lastTransitionTime"]) == (
        "Deferred",
        "1970-01-01T00:00:42Z",
    )
    await on.resizes.evaluate("pods_added")
    assert on.calls.asked == [("resize", "uid-a")]


async def test_pods_that_are_gone_or_content_are_dropped() -> None:
    on = World()
    for name in ("a", "b"):
        on.admit(sized(name, "1"))
        on.update(sized(name, "2"))
    on.pods.remove(sized("a", "2"))
    on.resizes.removed(["uid-a"])
    on.pods.put(sized("b", "1"))
    await on.resizes.evaluate("pods_removed")

    assert on.calls.asked == []
    assert list(on.book.queue) == []
    assert on.book.allocated("uid-a") == {}


async def test_an_outage_leaves_a_resize_where_it_is() -> None:
    on = World()
    on.admit(sized("a", "1"))
    on.update(sized("a", "2"))
    on.calls.answers("uid-a", down())
    await on.resizes.evaluate("pod_updated")

    assert list(on.book.queue) == ["uid-a"]
    assert on.told.events == []


async def test_victims_of_a_resize_are_ended() -> None:
    on = World()
    on.admit(sized("a", "1"))
    on.update(sized("a", "2"))
    on.calls.answers("uid-a", deferred(0, "v"), ADMITTED)
    await on.resizes.evaluate("pod_updated")

    assert on.ended == ["v"]
    assert on.calls.asked == [("resize", "uid-a"), ("resize", "uid-a", "v")]


async def test_nothing_is_evaluated_before_all_sources_are_ready() -> None:
    on = World()
    on.ready = False
    on.admit(sized("a", "1"))
    running = asyncio.create_task(on.resizes.run())
    on.update(sized("a", "2"))
    await asyncio.sleep(0.02)
    assert on.calls.asked == []

    on.ready = True
    on.resizes.ended()
    async with asyncio.timeout(60):
        while not on.calls.asked:  # noqa: ASYNC110 - no event says it
            await asyncio.sleep(0.001)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_an_image_is_no_resize() -> None:
    on = World()
    on.admit(sized("a", "1"))
    on.update(AgentPod({**sized("a", "1").document, "spec": {"containers": [container("c")]}}))
    assert on.book.queue == ("uid-a",)  # amounts that are gone are one

    other = World()
    other.admit(pod("a", container("c", image="x")))
    other.update(pod("a", container("c", image="y")))
    assert other.book.queue == ()
