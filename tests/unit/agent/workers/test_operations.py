"""The three operations over a recorder: what is started and stopped, and what is told of it."""

from __future__ import annotations

import pytest
from grpc import StatusCode
from tests.unit.agent.made import container, pod, sidecar
from tests.unit.agent.workers.operations_world import (
    NEVER,
    PLAIN,
    World,
)

from numalign.v1 import admission_pb2 as ad
from numalign_agent.runners.port import RunnerFailed
from numalign_agent.workers import work as w
from numalign_agent.workers.port import OperationFailed
from numalign_agent.workers.work import Kill, Update, UpdateKind
from numalign_client.errors import (
    AdmissionError,
    NotAdmitted,
    PreconditionFailed,
    ServiceUnavailable,
)


async def test_a_container_is_prepared_made_told_and_started() -> None:
    on = World()

    assert not await on.sync(PLAIN)
    assert on.calls.asked == [("prepare", "uid-p", "a"), ("add", "uid-p", "a")]
    assert on.told() == ["create a", "start a"]
    assert on.events == [
        "Normal Created Created container: a",
        "Normal Started Started container a",
    ]
    assert on.phase(PLAIN) == "Running"
    assert on.probes.followed == {"uid-p": 1}
    (status,) = on.cache.get("uid-p")["containerStatuses"]
    assert status["allocatedResourcesStatus"] == [{"name": "example.com/gpu"}]

    assert not await on.sync(PLAIN)
    assert on.told() == ["create a", "start a"]


async def test_containers_are_made_with_what_the_pod_is_allocated() -> None:
    """RES-4: a resize that waits is not known to whoever makes containers."""
    first, wanted = (
        pod("p", container("a", resources={"requests": {"cpu": cpu}})) for cpu in ("1", "9")
    )
    on = World()
    on.resizes.admitted(first, first, ad.AdmitResponse())
    await on.sync(wanted)

    (made,) = on.runner.pods
    assert made.spec["containers"][0]["resources"]["requests"] == {"cpu": "1"}


async def test_init_containers_and_sidecars_in_order() -> None:
    of = pod("p", container("a"), init=(container("i"), sidecar("s")))
    on = World()
    await on.sync(of)
    await on.exit("i", 0)
    await on.sync(of)
    await on.sync(of)

    assert on.told() == ["create i", "start i", "create s", "start s", "create a", "start a"]
    assert on.phase(of) == "Running"


async def test_crashes_are_answered_with_longer_and_longer_pauses() -> None:
    on = World()
    await on.sync(PLAIN)
    seen = []
    for _ in range(4):
        on.now += 1
        await on.exit("a", 1)
        try:
            await on.sync(PLAIN)
            seen.append(0.0)
        except OperationFailed as waiting:
            seen.append(waiting.retry_after or -1.0)
            state = on.cache.get("uid-p")["containerStatuses"][0]["state"]
            assert state["waiting"]["reason"] == "CrashLoopBackOff"
            on.now += seen[-1]
            await on.sync(PLAIN)

    assert seen == [0.0, 10.0, 20.0, 40.0]
    assert on.cache.get("uid-p")["containerStatuses"][0]["restartCount"] == 4
    assert sum("BackOff" in event for event in on.events) == 3


async def test_of_dead_containers_the_last_one_is_kept() -> None:
    on = World()
    await on.sync(PLAIN)
    for _ in range(4):
        on.now += 1000
        await on.exit("a", 1)
        await on.sync(PLAIN)
    found = await on.runner.get_pod("uid-p")

    assert found is not None
    assert [c.attempt for c in found.containers] == [3, 4]
    assert on.calls.asked.count(("remove",)) == 3


async def test_a_pod_that_is_done() -> None:
    on = World()
    await on.sync(NEVER)
    await on.exit("a", 0)

    assert await on.sync(NEVER)
    assert on.phase(NEVER) == "Succeeded"


def unavailable() -> AdmissionError:
    return ServiceUnavailable(StatusCode.UNAVAILABLE, "nobody is there")


@pytest.mark.parametrize("call", ["prepare", "add"])
async def test_while_admission_is_away_nothing_starts_and_nothing_is_left(call: str) -> None:
    on = World()
    on.calls.failing[call] = unavailable()
    with pytest.raises(OperationFailed, match="nobody is there") as failed:
        await on.sync(PLAIN)

    assert failed.value.retry_after == 1.0
    assert on.events == []
    assert await on.runner.list_pods() == []
    await on.sync(PLAIN)
    assert on.phase(PLAIN) == "Running"


async def test_an_admission_that_cannot_serve_is_asked_less_and_less_often() -> None:
    on = World()

    async def waits(times: int) -> list[float | None]:
        found = []
        for _ in range(times):
            on.calls.failing["add"] = unavailable()
            with pytest.raises(OperationFailed) as failed:
                await on.sync(PLAIN)
            found.append(failed.value.retry_after)
        return found

    long = await waits(6)
    on.operations.forget([PLAIN.uid])
    anew = await waits(2)
    await on.sync(PLAIN)
    await on.exit("a", 1)
    on.now += 1000
    after_a_start = await waits(1)

    assert long == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    assert anew == [1.0, 2.0]
    assert after_a_start == [1.0]


@pytest.mark.parametrize(
    ("failure", "message", "retry"),
    [
        pytest.param(
            NotAdmitted(StatusCode.NOT_FOUND, "unknown pod"),
            "not admitted: unknown pod",
            1.0,
            id="Admission has lost the pod",
        ),
        pytest.param(
            PreconditionFailed(StatusCode.FAILED_PRECONDITION, "the device is not ready"),
            "the device is not ready",
            None,
            id="a device is not ready",
        ),
    ],
)
async def test_what_stands_in_the_way_of_a_container(
    failure: AdmissionError, message: str, retry: float | None
) -> None:
    on = World()
    on.calls.failing["prepare"] = failure
    with pytest.raises(OperationFailed, match=message) as failed:
        await on.sync(PLAIN)

    assert failed.value.retry_after == retry


async def test_a_container_that_cannot_be_executed() -> None:
    on = World()
    on.runner.refuses["start"] = RunnerFailed("no such command")
    with pytest.raises(OperationFailed, match="no such command"):
        await on.sync(PLAIN)
    (told,) = on.cache.get("uid-p")["containerStatuses"]

    assert told["state"]["waiting"] == {
        "reason": "RunContainerError",
        "message": "no such command",
    }
    assert on.events[-1] == "Warning Failed Error: no such command"
    await on.sync(PLAIN)  # what was made before is removed, and another made
    assert on.phase(PLAIN) == "Running"
    assert ("remove",) in on.calls.asked


async def test_what_a_plugin_wants_and_nobody_can_give_is_told_of() -> None:
    on = World()
    on.calls.prepared.edits.envs["GPU"] = "g0"
    on.calls.prepared.edits.device_nodes.add(container_path="/dev/x", host_path="/dev/x")
    on.calls.prepared.edits.mounts.add(container_path="/lib/x", host_path="/opt/x")
    on.calls.prepared.edits.cdi_devices.append("vendor.com/x=1")
    await on.sync(PLAIN)

    placement = on.runner.told[0].placement
    assert placement is not None
    assert placement.environment == {"GPU": "g0"}
    assert on.events[0] == (
        "Warning DeviceEditsNotApplied container a: not applied: mount /lib/x, "
        "CDI device vendor.com/x=1"
    )


async def test_what_a_runner_does_not_give_is_told_of_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on = World()
    monkeypatch.setattr(on.runner, "not_given", lambda _: ["spec.volumes"])
    on.calls.failing["prepare"] = unavailable()
    with pytest.raises(OperationFailed):
        await on.sync(PLAIN)
    await on.sync(PLAIN)

    told = "Warning NotSupported not given by this runner: spec.volumes"
    assert on.events.count(told) == 1


async def test_an_exclusive_container_is_alone_before_it_starts() -> None:
    on = World()
    keeper = on.operations._on.life._placements
    keeper.heard("0-7")
    on.calls.prepared = ad.PrepareContainerResponse(cpus="0-7")
    await on.sync(PLAIN)
    on.calls.prepared = ad.PrepareContainerResponse(cpus="2-3", exclusive_cpus=True)
    await on.sync(pod("q", container("x")))

    assert [(t.what, t.container) for t in on.runner.told] == [
        ("create", "a"),
        ("start", "a"),
        ("create", "x"),
        ("place", "a"),
        ("start", "x"),
    ]
    moved = on.runner.told[3].placement
    assert moved is not None
    assert moved.cpus == "0-1,4-7"


async def test_sidecars_are_stopped_after_the_apps_the_last_one_first() -> None:
    of = pod("p", container("a"), container("b"), init=(sidecar("s1"), sidecar("s2")))
    on = World()
    for _ in range(3):
        await on.sync(of)
    on.runner.told.clear()
    work = w.accept(on.work(of), Update(UpdateKind.KILL, of, kill=Kill()), on.now)[0]
    await on.operations.terminate(w.began(work))

    stopped = on.told()
    assert set(stopped[:2]) == {"stop a", "stop b"}
    assert stopped[2:] == ["stop s2", "stop s1"]
    assert on.probes.followed == {}


async def test_the_end_gives_everything_back() -> None:
    on = World()
    await on.sync(PLAIN)
    await on.exit("a", 7)
    work = w.stopped(w.accept(on.work(PLAIN), Update(UpdateKind.KILL, PLAIN), on.now)[0])
    await on.operations.finish(work)

    assert ("release", "uid-p") in on.calls.asked
    assert on.released == ["uid-p"]
    assert on.phase(PLAIN) == "Failed"


async def test_a_release_that_fails_is_left_to_reconciliation() -> None:
    on = World()
    on.calls.failing["release"] = unavailable()
    await on.operations.finish(w.stopped(on.work(PLAIN)))

    assert on.released == []
    assert on.phase(PLAIN) == "Failed"


async def test_claims_are_prepared_before_anything_runs_and_not_for_the_next_container() -> None:
    world, of = World(), pod("p", container("a"), container("b"))
    world.claims.fails = OperationFailed("no driver", 2.0)
    with pytest.raises(OperationFailed, match="no driver"):
        await world.sync(of)
    before = world.told()
    world.claims.fails = None
    await world.sync(of)
    await world.exit("a", 1)
    world.now += 100
    await world.sync(of)

    assert before == []
    assert world.claims.prepared == ["uid-p", "uid-p"]
    world.operations.forget(["uid-p"])
    assert world.claims.prepared == []
