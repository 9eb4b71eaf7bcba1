"""Statuses of pods: phases, containers, conditions, and what is never left (WRK-15 to WRK-17)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.unit.agent.made import container, ended, found, pod, sidecar

from numalign_agent.pod import AgentPod
from numalign_agent.runners.port import RuntimeContainer
from numalign_agent.status.compute import PodFacts, computed, is_overdue, rejected
from numalign_agent.status.conditions import condition_in, ready_differs
from numalign_agent.status.container_statuses import ContainerFacts, Waiting
from numalign_agent.workers.work import EndedBy

NOW = 1_000_000.0
AT_100, AT_200 = "1970-01-01T00:01:40Z", "1970-01-01T00:03:20Z"


def status_of(
    of: AgentPod,
    *containers: RuntimeContainer,
    ready: tuple[str, ...] | None = None,
    waiting: Mapping[str, Waiting] | None = None,
    before: Mapping[str, Any] | None = None,
    **facts: Any,
) -> dict[str, Any]:
    ids = frozenset(c.id for c in containers if c.phase == "running")
    judged = ids if ready is None else frozenset(ready)
    return computed(
        of,
        PodFacts(
            containers=ContainerFacts(
                containers=containers,
                ready=judged,
                started=ids,
                waiting=waiting or {},
                allocated=facts.pop("allocated", {}),
            ),
            before=before or {},
            qos_class="Burstable",
            now=NOW,
            **facts,
        ),
    )


TWO = pod("p", container("a"), container("b"))
NEVER = pod("p", container("a"), container("b"), restartPolicy="Never")
ON_FAILURE = pod("p", container("a"), container("b"), restartPolicy="OnFailure")
INIT = pod("p", container("a"), init=(container("i"), sidecar("s")))
INIT_NEVER = pod("p", container("a"), init=(container("i"),), restartPolicy="Never")
STATIC = pod("p", container("a"), source="file")


@pytest.mark.parametrize(
    ("of", "containers", "phase"),
    [
        pytest.param(TWO, (), "Pending", id="nothing yet"),
        pytest.param(TWO, (found(TWO, "a"),), "Pending", id="one of two"),
        pytest.param(TWO, (found(TWO, "a"), found(TWO, "b")), "Running", id="both"),
        pytest.param(TWO, (ended(TWO, "a"), ended(TWO, "b")), "Running", id="they come again"),
        pytest.param(NEVER, (ended(NEVER, "a"), ended(NEVER, "b")), "Succeeded", id="done"),
        pytest.param(NEVER, (ended(NEVER, "a"), ended(NEVER, "b", 1)), "Failed", id="one failed"),
        pytest.param(NEVER, (found(NEVER, "a"), ended(NEVER, "b", 1)), "Running", id="one is left"),
        pytest.param(
            ON_FAILURE,
            (ended(ON_FAILURE, "a"), ended(ON_FAILURE, "b", 1)),
            "Running",
            id="one comes again",
        ),
        pytest.param(
            ON_FAILURE,
            (ended(ON_FAILURE, "a"), ended(ON_FAILURE, "b")),
            "Succeeded",
            id="none comes again",
        ),
        pytest.param(INIT, (found(INIT, "i"),), "Pending", id="initialising"),
        pytest.param(INIT, (ended(INIT, "i"), found(INIT, "s")), "Pending", id="initialised"),
        pytest.param(
            INIT,
            (ended(INIT, "i"), found(INIT, "s"), found(INIT, "a")),
            "Running",
            id="beside a sidecar",
        ),
        pytest.param(
            INIT,
            (ended(INIT, "i"), ended(INIT, "s", 1), found(INIT, "a")),
            "Running",
            id="a sidecar that ended does not count",
        ),
        pytest.param(INIT_NEVER, (ended(INIT_NEVER, "i", 1),), "Failed", id="init failed"),
        pytest.param(INIT, (ended(INIT, "i", 1),), "Pending", id="init failed, and comes again"),
    ],
)
def test_phase(of: AgentPod, containers: tuple[RuntimeContainer, ...], phase: str) -> None:
    assert status_of(of, *containers)["phase"] == phase


@pytest.mark.parametrize(
    ("of", "containers", "phase"),
    [
        pytest.param(TWO, (ended(TWO, "a"), ended(TWO, "b")), "Succeeded", id="all well"),
        pytest.param(TWO, (ended(TWO, "a"), ended(TWO, "b", 143)), "Failed", id="one killed"),
        pytest.param(TWO, (), "Failed", id="STAT-5: never started"),
        pytest.param(STATIC, (ended(STATIC, "a", 143),), "Running", id="a static pod is not"),
    ],
)
def test_phase_of_what_is_over(
    of: AgentPod, containers: tuple[RuntimeContainer, ...], phase: str
) -> None:
    status = status_of(of, *containers, is_over=True)

    assert status["phase"] == phase
    assert all("terminated" in c["state"] for c in status["containerStatuses"])


def test_a_container_that_runs() -> None:
    status = status_of(STATIC, found(STATIC, "a", attempt=2))

    assert status["containerStatuses"] == [
        {
            "name": "a",
            "state": {"running": {"startedAt": AT_100}},
            "lastState": {},
            "ready": True,
            "restartCount": 2,
            "image": "a-image",
            "imageID": "",
            "containerID": "numalign://a-2",
            "started": True,
        }
    ]
    assert status["startTime"] == "1970-01-12T13:46:40Z"
    assert status["qosClass"] == "Burstable"


def test_what_ended_before_is_told_of() -> None:
    status = status_of(STATIC, ended(STATIC, "a", 3), found(STATIC, "a", attempt=1))
    (told,) = status["containerStatuses"]

    assert told["lastState"]["terminated"] == {
        "exitCode": 3,
        "reason": "Error",
        "containerID": "numalign://a-0",
        "startedAt": AT_100,
        "finishedAt": AT_200,
    }

    forgotten = status_of(STATIC, found(STATIC, "a", attempt=1), before=status)
    assert forgotten["containerStatuses"] == status["containerStatuses"]


def test_a_container_that_waits_after_a_crash() -> None:
    waiting = {"a": Waiting("CrashLoopBackOff", "back-off 10s")}
    (told,) = status_of(STATIC, ended(STATIC, "a", 1), waiting=waiting)["containerStatuses"]

    assert told["state"] == {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    assert told["lastState"]["terminated"]["exitCode"] == 1
    assert status_of(STATIC, ended(STATIC, "a", 1), waiting=waiting)["phase"] == "Running"


@pytest.mark.parametrize(("of", "reason"), [(TWO, "ContainerCreating"), (INIT, "PodInitializing")])
def test_why_nothing_runs_yet(of: AgentPod, reason: str) -> None:
    assert status_of(of)["containerStatuses"][0]["state"] == {"waiting": {"reason": reason}}


def test_what_the_runtime_has_lost() -> None:
    running = status_of(STATIC, found(STATIC, "a", attempt=2))
    (told,) = status_of(STATIC, before=running)["containerStatuses"]
    (over,) = status_of(STATIC, before=running, is_over=True)["containerStatuses"]

    assert told["restartCount"] == 2
    assert told["lastState"]["terminated"]["exitCode"] == 137
    assert over["state"]["terminated"]["reason"] == "ContainerStatusUnknown"
    assert over["state"]["terminated"]["message"] == (
        "The container could not be located when the pod was terminated"
    )


def test_what_containers_are_allocated_is_shown() -> None:
    allocated = {"a": {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}}
    (told,) = status_of(STATIC, found(STATIC, "a"), allocated=allocated)["containerStatuses"]

    assert told["resources"] == allocated["a"]
    assert told["allocatedResources"] == {"cpu": "1"}


def conditions_of(status: Mapping[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {
        c["type"]: (c["status"], c.get("reason", ""), c.get("message", ""))
        for c in status["conditions"]
    }


@pytest.mark.parametrize(
    ("of", "containers", "ready", "expected"),
    [
        pytest.param(
            TWO,
            (found(TWO, "a"), found(TWO, "b")),
            None,
            {
                "PodScheduled": ("True", "", ""),
                "Initialized": ("True", "", ""),
                "ContainersReady": ("True", "", ""),
                "Ready": ("True", "", ""),
            },
            id="all well",
        ),
        pytest.param(
            TWO,
            (found(TWO, "a"), found(TWO, "b")),
            ("a-0",),
            {
                "ContainersReady": (
                    "False",
                    "ContainersNotReady",
                    "containers with unready status: [b]",
                ),
                "Ready": ("False", "ContainersNotReady", "containers with unready status: [b]"),
            },
            id="one is not ready",
        ),
        pytest.param(
            INIT,
            (found(INIT, "i"),),
            None,
            {
                "Initialized": (
                    "False",
                    "ContainersNotInitialized",
                    "containers with incomplete status: [i s]",
                )
            },
            id="initialising",
        ),
        pytest.param(
            NEVER,
            (ended(NEVER, "a"), ended(NEVER, "b")),
            None,
            {
                "Initialized": ("True", "PodCompleted", ""),
                "Ready": ("False", "PodCompleted", ""),
                "ContainersReady": ("False", "PodCompleted", ""),
            },
            id="done",
        ),
        pytest.param(
            NEVER,
            (ended(NEVER, "a"), ended(NEVER, "b", 1)),
            None,
            {"Ready": ("False", "PodFailed", "")},
            id="failed",
        ),
    ],
)
def test_conditions(
    of: AgentPod,
    containers: tuple[RuntimeContainer, ...],
    ready: tuple[str, ...] | None,
    expected: dict[str, tuple[str, str, str]],
) -> None:
    told = conditions_of(status_of(of, *containers, ready=ready))

    assert {kind: told[kind] for kind in expected} == expected


def test_a_condition_keeps_the_time_of_its_last_change() -> None:
    before = status_of(TWO, found(TWO, "a"))
    old = {**before, "conditions": [{**c, "lastTransitionTime": "X"} for c in before["conditions"]]}
    after = status_of(TWO, found(TWO, "a"), found(TWO, "b"), before=old)
    times = {c["type"]: c["lastTransitionTime"] for c in after["conditions"]}

    assert times["PodScheduled"] == "X"
    assert times["Ready"] == "1970-01-12T13:46:40Z"


GATED = pod("p", container("a"), readinessGates=[{"conditionType": "example.com/x"}])


@pytest.mark.parametrize(
    ("shown", "status", "message"),
    [
        ([], "False", "does not exist"),
        ([{"type": "example.com/x", "status": "False"}], "False", "but False"),
        ([{"type": "example.com/x", "status": "True"}], "True", ""),
    ],
)
def test_readiness_gates(shown: list[dict[str, str]], status: str, message: str) -> None:
    """HND-5: what the source shows is compared with what follows from the gates."""
    of = GATED.replacing("status", conditions=shown)
    own = status_of(of, found(of, "a"))
    ready = condition_in(own, "Ready")

    assert ready is not None
    assert ready["status"] == status
    assert message in ready.get("message", "")
    assert ready_differs(of, own)
    echoed = of.replacing("status", conditions=[*shown, dict(ready)])
    assert not ready_differs(echoed, own)


def test_a_terminal_phase_is_never_left() -> None:
    """WRK-17."""
    over = {"phase": "Failed", "reason": "Evicted", "message": "gone"}
    status = status_of(TWO, found(TWO, "a"), found(TWO, "b"), before=over)

    assert (status["phase"], status["reason"], status["message"]) == ("Failed", "Evicted", "gone")


def test_reason_and_message_last_as_long_as_the_phase() -> None:
    before = {"phase": "Pending", "reason": "AppArmor", "message": "not yet"}

    assert status_of(TWO, before=before)["reason"] == "AppArmor"
    assert "reason" not in status_of(TWO, found(TWO, "a"), found(TWO, "b"), before=before)


def test_a_pod_that_the_node_ends() -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    by = EndedBy("Preempting", "make room", condition=condition)
    status = status_of(STATIC, found(STATIC, "a"), ended_by=by)
    later = status_of(STATIC, ended(STATIC, "a"), before=status, is_over=True)

    assert (status["phase"], status["reason"]) == ("Failed", "Preempting")
    assert conditions_of(later)["DisruptionTarget"] == ("True", "TerminationByKubelet", "")


@pytest.mark.parametrize(
    ("limit", "since", "overdue"),
    [(10, None, False), (None, AT_100, False), (100, AT_100, True), (101, AT_100, False)],
)
def test_active_deadline(limit: int | None, since: str | None, overdue: bool) -> None:
    """WRK-16, trap 35."""
    own: dict[str, Any] = {} if limit is None else {"activeDeadlineSeconds": limit}
    of = pod("p", container("a"), **own)
    before = {} if since is None else {"startTime": since}

    assert is_overdue(of, before, 200.0) is overdue


def test_an_overdue_pod_fails() -> None:
    of = pod("p", container("a"), activeDeadlineSeconds=10)
    status = status_of(of, found(of, "a"), before={"startTime": AT_100})

    assert (status["phase"], status["reason"], status["message"]) == (
        "Failed",
        "DeadlineExceeded",
        "Pod was active on the node longer than the specified deadline",
    )


def test_a_rejected_pod() -> None:
    """ADM-10, trap 19."""
    of = pod("p", metadata={"generation": 4})

    assert rejected(of, "OutOfcpu", "too few", {}, "Guaranteed", NOW) == {
        "phase": "Failed",
        "reason": "OutOfcpu",
        "message": "Pod was rejected: too few",
        "qosClass": "Guaranteed",
        "startTime": "1970-01-12T13:46:40Z",
        "observedGeneration": 4,
    }
    kept = rejected(of, "X", "y", {"startTime": AT_100}, "", NOW)
    assert kept["startTime"] == AT_100
