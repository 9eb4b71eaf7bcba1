"""What each event of the runtime is answered, with an Admission that is made up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from grpc import StatusCode
from tests.unit.agent.nri.made_up import (
    GUARANTEED,
    World,
    container_message,
    pod_message,
    record,
    refusal,
)

from numalign.kube.nri.v1alpha1 import api_pb2 as nri
from numalign.model.cpu_set import CpuSet
from numalign_agent.nri.admission import Decision, NoAnswer, Verdict
from numalign_agent.nri.known import Refusal
from numalign_agent.nri.plan.drift import Actual
from numalign_agent.nri.plan.refusals import OnReject
from numalign_agent.nri.plan.standing import Standing

REFUSED = Decision(Verdict.REJECTED, refusal=Refusal("TopologyAffinityError", "no room"))
DEFERRED = Decision(Verdict.DEFERRED, refusal=Refusal("DevicesNotReady", "wait"))
UNJUDGED = Decision(Verdict.UNJUDGED, refusal=Refusal("CannotBeJudged", "spec.x: bad"))


def place(response: nri.CreateContainerResponse) -> tuple[str, str, int]:
    cpu = response.adjust.linux.resources.cpu
    return cpu.cpus, cpu.mems, cpu.quota.value


def moves(response: Any) -> dict[str, str]:
    return {u.container_id: u.linux.resources.cpu.cpus for u in response.update}


async def test_an_exclusive_container_gets_its_cpus_and_others_leave_them() -> None:
    world = World()
    await world.run("shared")
    first = await world.create("shared")
    await world.run("own", 2)
    second = await world.create("own")

    assert place(first) == ("0-3", "", 0)
    assert place(second) == ("2-3", "", -1)
    assert moves(second) == {"shared-app-0": "0-1"}
    assert second.update[0].ignore_failure
    assert world.decisions() == {"admitted": 2}


async def test_the_quota_may_be_kept() -> None:
    world = World(lift_quota=False)
    await world.run("own", 2)

    assert not (await world.create("own")).adjust.linux.resources.cpu.HasField("quota")


async def test_a_refusal_says_why_and_is_not_remembered() -> None:
    world = World()
    await world.run("first", 3)
    failed = await refusal(world.run("second", 1))
    await world.end("first")
    await world.run("second", 1)

    assert failed.code is StatusCode.FAILED_PRECONDITION
    assert failed.message == "TopologyAffinityError: no room"
    assert place(await world.create("second"))[0] == "3"
    assert world.api.evicted == []


async def test_a_container_in_a_sandbox_that_was_refused() -> None:
    world = World()
    await world.run("first", 3)
    await refusal(world.run("second", 1))
    failed = await refusal(world.create("second"))

    assert failed.message == "TopologyAffinityError: no room"
    assert [c.id for _, c in world.books.live()] == []


async def test_a_container_of_a_pod_that_was_never_heard_of() -> None:
    world = World()
    world.specs.cpus["uid-late"] = 1

    assert place(await world.create("late"))[0] == "3"
    assert world.admission.asked == ["uid-late"]


@pytest.mark.parametrize(
    ("on_reject", "answer", "evicted"),
    [
        pytest.param(OnReject.EVICT, REFUSED, ["uid-a"], id="evicted"),
        pytest.param(OnReject.EVICT, DEFERRED, [], id="a-deferral-evicts-nobody"),
        pytest.param(OnReject.WAIT, REFUSED, [], id="waits"),
    ],
)
async def test_evictions(on_reject: OnReject, answer: Decision, evicted: list[str]) -> None:
    world = World(on_reject=on_reject)
    world.admission.answer = answer
    for _ in range(2):
        await refusal(world.run("a"))
    await asyncio.sleep(0)

    assert sorted(set(world.api.evicted)) == evicted
    await world.evictions.close()


@pytest.mark.parametrize(
    ("options", "annotations", "answer", "told"),
    [
        pytest.param({"on_reject": OnReject.SHARED}, {}, REFUSED, "no room", id="by-configuration"),
        pytest.param({}, {"kubernetes.io/config.source": "file"}, REFUSED, "static", id="static"),
        pytest.param(
            {"exempt_namespaces": frozenset({"default"})}, {}, REFUSED, "exempt", id="namespace"
        ),
        pytest.param({}, {}, UNJUDGED, "spec.x: bad", id="cannot-be-judged"),
    ],
)
async def test_refused_and_running(
    options: dict[str, Any], annotations: dict[str, str], answer: Decision, told: str
) -> None:
    world = World(**options)
    world.admission.answer = answer
    await world.run("a", annotations=annotations)
    response = await world.create("a")

    assert place(response)[0] == "0-3"
    assert world.decisions() == {"shared": 1}
    ((called, reason, message),) = world.reporter._waiting
    assert (called.name, told in message) == ("a", True)
    assert answer.refusal is not None
    assert reason == answer.refusal.reason


@pytest.mark.parametrize("again", ["a-sandbox", "a-connection"])
async def test_who_was_refused_and_runs_is_judged_anew(again: str) -> None:
    world = World(on_reject=OnReject.SHARED)
    world.admission.answer = REFUSED
    await world.run("a", 1)
    pod = world.books.pods()[0]
    refused = world.books.standing(pod)
    world.admission.answer = None
    if again == "a-sandbox":
        await world.run("a", 1)
    else:
        world.events.connected()

    assert refused is Standing.SHARED
    assert world.books.standing(pod) is (
        Standing.ADMITTED if again == "a-sandbox" else Standing.WAITING
    )


async def test_what_is_estimated_is_not_admitted_a_second_time() -> None:
    world = World()
    world.books.recorded("estimated:uid-a:app", record(app="3"))
    world.specs.unknown.add("uid-a")
    await world.run("a")
    world.specs.unknown.clear()
    await world.run("a")

    assert world.books.standing(world.books.pods()[0]) is Standing.ESTIMATED


async def test_a_critical_pod_is_never_refused() -> None:
    world = World()
    world.admission.answer = REFUSED
    world.specs.spec = {"priority": 2_000_000_000}
    await world.run("a")

    assert place(await world.create("a"))[0] == "0-3"


async def test_an_admission_that_hangs_costs_the_time_for_it_once() -> None:
    world = World()
    world.admission.slow = 60
    await world.run("a", 1)
    pod = world.books.pods()[0]
    response = await world.create("a")

    assert world.books.standing(pod) is Standing.WAITING
    assert place(response)[0] == "0-3"
    assert world.admission.hangs
    assert world.woken > 0
    assert "admission_timeouts_total 2.0" in world.metrics.text()


async def test_an_admission_that_is_down() -> None:
    world = World()
    await world.run("own", 1)
    world.admission.broken = NoAnswer("connection refused")
    known = await world.create("own")
    await world.run("late", 1)
    late = await world.create("late")

    assert place(known) == ("3", "", -1), "what was granted is known here too"
    assert place(late)[0] == "0-2"


async def test_a_record_that_admission_has_lost() -> None:
    world = World()
    await world.run("own", 1)
    world.admission.given.clear()
    response = await world.create("own")

    assert place(response)[0] == "0-3"
    assert [pod.name for pod in world.books.waiting()] == ["own"]


async def test_a_pod_of_no_known_spec() -> None:
    world = World()
    world.specs.unknown.add("uid-a")
    world.admission.answer = Decision(Verdict.ADMITTED, record=record(app="3"))
    pod = pod_message("a")
    pod.linux.cgroup_parent = f"{GUARANTEED}a"
    container = container_message("a")
    container.linux.resources.cpu.quota.value = 100_000
    container.linux.resources.cpu.period.value = 100_000
    container.linux.resources.memory.limit.value = 1 << 20
    await world.events.run_pod_sandbox(pod)
    world.admission.given["estimated:uid-a:app"] = CpuSet.parse("3")
    response = await world.events.create_container(pod, container)

    assert world.admission.asked == ["estimated:uid-a:app"]
    assert place(response)[0] == "3"
    assert world.decisions() == {"estimated": 1}


async def test_an_estimate_that_is_refused_vetoes_nothing() -> None:
    world = World()
    world.specs.unknown.add("uid-a")
    world.admission.answer = REFUSED
    pod = pod_message("a")
    pod.linux.cgroup_parent = f"{GUARANTEED}a"
    container = container_message("a")
    container.linux.resources.cpu.shares.value = 1024
    container.linux.resources.memory.limit.value = 1 << 20
    await world.events.run_pod_sandbox(pod)

    assert place(await world.events.create_container(pod, container))[0] == "0-3"
    assert world.decisions() == {"shared": 1}


async def test_cpus_that_the_kubelet_asks_for_stay() -> None:
    world = World()
    await world.run("a")
    response = await world.events.create_container(
        pod_message("a"), container_message("a", cpus="1")
    )

    assert not response.HasField("adjust")


async def test_what_ended_makes_room_before_anybody_is_refused() -> None:
    world = World()
    await world.run("job", 3)
    await world.create("job")
    await world.events.stop_pod_sandbox(pod_message("job"))
    await world.run("next", 3)

    assert place(await world.create("next"))[0] == "1-3"


async def test_a_restarted_sandbox_keeps_what_the_pod_has() -> None:
    world = World()
    await world.run("a", 1)
    await world.events.stop_pod_sandbox(pod_message("a"))
    again = pod_message("a")
    again.id = "sandbox-a-1"
    await world.events.run_pod_sandbox(again)
    await world.events.remove_pod_sandbox(pod_message("a"))
    await world.do_chores()

    assert set(world.admission.given) == {"uid-a"}
    assert world.admission.told == []


async def test_admission_is_told_of_containers_and_ends() -> None:
    world = World()
    await world.run("a", 1)
    await world.create("a")
    await world.events.stop_container(container_message("a"))
    await world.events.remove_container(container_message("a"))
    await world.end("a")

    assert world.admission.told == [
        ("add", "uid-a", "app", "a-app-0"),
        ("remove", "a-app-0"),
        ("release", "uid-a"),
    ]


async def test_chores_wait_for_an_admission_that_is_down() -> None:
    world = World()
    await world.run("a", 1)
    await world.create("a")
    world.admission.broken = NoAnswer("down")
    running = asyncio.create_task(world.chores.run())
    await asyncio.sleep(0.05)
    world.admission.broken = None
    async with asyncio.timeout(60):
        await world.chores.idle.wait()
    running.cancel()

    assert world.admission.told == [("add", "uid-a", "app", "a-app-0")]


async def test_an_update_keeps_the_place_and_brings_others_along() -> None:
    world = World()
    await world.run("own", 1)
    await world.create("own")
    await world.run("shared")
    await world.create("shared")
    world.books.recorded("uid-other", record(revision=9, app="2"))
    response = await world.events.update_container(pod_message("own"), container_message("own"))

    assert moves(response) == {"shared-app-0": "0-1", "own-app-0": "3"}
    assert response.update[-1].container_id == "own-app-0"
    assert response.update[-1].linux.resources.cpu.quota.value == -1


async def test_a_stop_brings_changes_along() -> None:
    world = World()
    await world.run("a")
    await world.create("a")
    await world.run("b")
    await world.create("b")
    world.books.recorded("uid-other", record(revision=9, app="3"))
    response = await world.events.stop_container(container_message("b"))

    assert moves(response) == {"a-app-0": "0-2"}


async def test_hugepages_are_limited_to_what_was_given() -> None:
    world = World()
    world.admission.hugepages = {"2MB": 4 << 20, "1GB": 1 << 30}
    await world.run("a", 1)
    response = await world.create("a")

    limits = response.adjust.linux.resources.hugepage_limits
    assert [(limit.page_size, limit.limit) for limit in limits] == [
        ("1GB", 1 << 30),
        ("2MB", 4 << 20),
    ]


async def test_who_ran_unpinned_is_told_of_at_the_first_sight() -> None:
    world = World()
    world.books.recorded("uid-own", record(app="3"))
    updates = world.events.synchronize(
        [pod_message("own"), pod_message("shared")],
        [container_message("own"), container_message("shared")],
    )

    assert {u.container_id: u.linux.resources.cpu.cpus for u in updates} == {
        "shared-app-0": "0-2",
        "own-app-0": "3",
    }
    assert "unpinned_containers_total 2.0" in world.metrics.text()


@pytest.mark.parametrize(
    ("cpus", "mems", "told"),
    [
        pytest.param("0-3", "0", [], id="all CPUs are shared"),
        pytest.param("0-1", "0", [], id="less than the shared ones"),
        pytest.param(
            "0-7",
            "0",
            [("web", "Container app: it may use CPUs 0-7, and should use 0-3")],
            id="more than the shared ones",
        ),
        pytest.param(
            None,
            "",
            [("web", "Container app: it could use all CPUs, and is put on 0-3")],
            id="nobody can tell",
        ),
    ],
)
async def test_who_may_use_what_it_should_is_set_without_a_word(
    cpus: str | None, mems: str, told: list[tuple[str, str]]
) -> None:
    world = World(cpus=4)
    container = container_message("web")
    container.linux.cgroups_path = "/web"
    if cpus is not None:
        world.kernel["/web"] = Actual(CpuSet.parse(cpus), CpuSet.parse(mems))
    updates = world.events.synchronize([pod_message("web")], [container])
    reporting = asyncio.create_task(world.reporter.run())
    for _ in range(20):
        await asyncio.sleep(0)
    reporting.cancel()

    assert [u.linux.resources.cpu.cpus for u in updates] == ["0-3"]
    assert [(pod, message) for pod, _, message in world.api.warnings] == told
    assert f"unpinned_containers_total {len(told)}.0" in world.metrics.text()
