"""What is done next to containers: the rules of restarts, init containers and sidecars."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.agent.made import container, ended, found, pod, sidecar

from numalign_agent.containers.plan import ContainerPlan, plan
from numalign_agent.pod import AgentPod
from numalign_agent.runners.port import RuntimeContainer

PLAIN = pod("p", container("a"), container("b"))
WITH_INIT = pod("p", container("a"), init=(container("i1"), sidecar("s"), container("i2")))


def planned(
    of: AgentPod,
    *containers: RuntimeContainer,
    started: tuple[str, ...] = (),
    failing: tuple[str, ...] = (),
    pause: float = 0.0,
) -> ContainerPlan:
    return plan(
        of,
        containers,
        started=frozenset(started),
        failing=frozenset(failing),
        pause=lambda _: pause,
    )


def starts(todo: ContainerPlan) -> list[tuple[str, int]]:
    return [(start.spec.name, start.attempt) for start in todo.starts]


@pytest.mark.parametrize(
    ("containers", "started", "expected"),
    [
        pytest.param((), (), [("i1", 0)], id="the first init container alone"),
        pytest.param((found(WITH_INIT, "i1"),), (), [], id="it runs: wait"),
        pytest.param((ended(WITH_INIT, "i1"),), (), [("s", 0)], id="then the sidecar"),
        pytest.param(
            (ended(WITH_INIT, "i1"), found(WITH_INIT, "s")), (), [], id="not started yet: wait"
        ),
        pytest.param(
            (ended(WITH_INIT, "i1"), found(WITH_INIT, "s")),
            ("s-0",),
            [("i2", 0)],
            id="started: the next init container",
        ),
        pytest.param(
            (ended(WITH_INIT, "i1"), found(WITH_INIT, "s"), ended(WITH_INIT, "i2")),
            ("s-0",),
            [("a", 0)],
            id="all through: the app container",
        ),
        pytest.param(
            (ended(WITH_INIT, "i1", code=1),), (), [("i1", 1)], id="one that failed again"
        ),
        pytest.param(
            (
                ended(WITH_INIT, "i1"),
                ended(WITH_INIT, "s", code=1),
                ended(WITH_INIT, "i2"),
                found(WITH_INIT, "a"),
            ),
            (),
            [("s", 1)],
            id="a sidecar that ended comes again while the app runs",
        ),
        pytest.param(
            (found(WITH_INIT, "a"), found(WITH_INIT, "s")),
            ("s-0",),
            [],
            id="an app that runs says that init is over",
        ),
    ],
)
def test_init_containers_and_sidecars(
    containers: tuple[RuntimeContainer, ...], started: tuple[str, ...], expected: list[Any]
) -> None:
    assert starts(planned(WITH_INIT, *containers, started=started)) == expected


@pytest.mark.parametrize(
    ("policy", "code", "again"),
    [
        ("Always", 0, True),
        ("Always", 1, True),
        ("OnFailure", 0, False),
        ("OnFailure", 1, True),
        ("Never", 0, False),
        ("Never", 1, False),
    ],
)
def test_restart_policy(policy: str, code: int, again: bool) -> None:
    of = pod("p", container("a"), container("b"), restartPolicy=policy)
    todo = planned(of, ended(of, "a", code), found(of, "b"))

    assert starts(todo) == ([("a", 1)] if again else [])


def test_a_failed_init_container_ends_a_pod_that_never_restarts() -> None:
    of = pod("p", container("a"), init=(container("i"),), restartPolicy="Never")

    assert planned(of, ended(of, "i", code=1)) == ContainerPlan()


def test_app_containers_start_together() -> None:
    assert starts(planned(PLAIN)) == [("a", 0), ("b", 0)]


def test_a_pause_is_told_and_nothing_started() -> None:
    todo = planned(PLAIN, ended(PLAIN, "a", 1), found(PLAIN, "b"), pause=7.0)

    assert todo.starts == ()
    assert todo.pauses == {"a": 7.0}


def test_what_was_made_and_never_started_is_made_anew() -> None:
    todo = planned(PLAIN, found(PLAIN, "a", "created"), found(PLAIN, "b"), pause=7.0)

    assert starts(todo) == [("a", 1)]
    assert todo.starts[0].instead_of == found(PLAIN, "a", "created")


def test_only_the_last_attempt_counts() -> None:
    todo = planned(PLAIN, ended(PLAIN, "a", 1, attempt=3), found(PLAIN, "a", attempt=4))

    assert starts(todo) == [("b", 0)]


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
def test_a_changed_definition_restarts_under_every_policy(policy: str) -> None:
    of = pod("p", container("a"), restartPolicy=policy)
    todo = planned(of, found(of, "a", spec_hash="other"))

    assert [stop.container.id for stop in todo.stops] == ["a-0"]
    assert "definition changed" in todo.stops[0].why
    assert starts(todo) == [("a", 1)]


@pytest.mark.parametrize(("policy", "again"), [("Always", True), ("Never", False)])
def test_a_failed_liveness_probe_ends_a_container(policy: str, again: bool) -> None:
    of = pod("p", container("a"), restartPolicy=policy)
    todo = planned(of, found(of, "a"), failing=("a-0",))

    assert [stop.container.id for stop in todo.stops] == ["a-0"]
    assert starts(todo) == ([("a", 1)] if again else [])


def test_resources_change_in_place() -> None:
    before = pod("p", container("a", resources={"requests": {"cpu": "1"}}))
    after = pod("p", container("a", resources={"requests": {"cpu": "2"}}))

    assert planned(after, found(before, "a")) == ContainerPlan()


def test_after_a_boot_init_containers_run_again() -> None:
    of = pod("p", container("a"), init=(container("i"),))
    gone = (
        ended(of, "i", earlier_boot=True),
        ended(of, "a", code=137, earlier_boot=True),
    )

    assert starts(planned(of, *gone)) == [("i", 1)]
    assert starts(planned(of, *gone, ended(of, "i", attempt=1))) == [("a", 1)]


_KINDS = st.lists(st.sampled_from(["init", "sidecar"]), max_size=3)


@given(
    init=_KINDS,
    apps=st.integers(1, 3),
    policy=st.sampled_from(["Always", "OnFailure", "Never"]),
    ends=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1)), max_size=12),
)
def test_a_life_of_any_pod(
    init: list[str], apps: int, policy: str, ends: list[tuple[int, int]]
) -> None:
    """Whatever ends in whatever order: one attempt at a time, and nothing before its turn."""
    made = [
        sidecar(f"i{n}") if kind == "sidecar" else container(f"i{n}") for n, kind in enumerate(init)
    ]
    of = pod(
        "p", *(container(f"a{n}") for n in range(apps)), init=tuple(made), restartPolicy=policy
    )
    listed: dict[str, RuntimeContainer] = {}

    def running() -> list[str]:
        return [name for name, seen in listed.items() if seen.phase == "running"]

    for which, code in [*ends, (0, 0)]:
        todo = planned(of, *listed.values(), started=tuple(listed[name].id for name in running()))
        for start in todo.starts:
            name = start.spec.name
            before = listed.get(name)
            assert name not in running()
            assert start.attempt == (0 if before is None else before.attempt + 1)
            if name.startswith("a"):
                for n, kind in enumerate(init):
                    seen = listed.get(f"i{n}")
                    assert seen is not None, "an app container before an init container"
                    assert kind == "sidecar" or seen.exit_code == 0
            listed[name] = found(of, name, attempt=start.attempt)
        assert sum(name.startswith("i") and init[int(name[1])] == "init" for name in running()) <= 1
        if running():
            name = running()[which % len(running())]
            listed[name] = ended(of, name, code, attempt=listed[name].attempt)
