"""HSK-5 to HSK-8, as decisions over a picture."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.agent.made import ended, found, pod

from numalign_agent.housekeeping.plan import CleanUp, Picture, clean_up, counts
from numalign_agent.pod import AgentPod
from numalign_agent.runners.port import RuntimeContainer, RuntimePod
from numalign_agent.workers.work import Kill, PodWork, Update, UpdateKind, first_work

DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
A = pod("a")
GOING = pod("a", metadata=DELETED, status={"phase": "Failed"})


def work_of(of: AgentPod) -> PodWork:
    return first_work(Update(UpdateKind.CREATE, of), 1.0, runtime_idle=True)


def in_runtime(of: AgentPod, container: RuntimeContainer) -> dict[str, RuntimePod]:
    return {of.uid: RuntimePod(of.uid, of.name, of.namespace, (container,))}


def picture(**fields: Any) -> Picture:
    empty: dict[str, Any] = {
        "desired": {},
        "works": {},
        "runtime": {},
        "ended": set(),
        "undecided": set(),
        "admitted": set(),
    }
    return Picture(**{**empty, **fields})


NOTHING = CleanUp((), (), (), ())


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(
            picture(desired={"uid-a": A}, admitted={"uid-a"}),
            CleanUp(("uid-a",), (), (), ()),
            id="HSK-5: admitted, without worker",
        ),
        pytest.param(
            picture(desired={"uid-a": A}),
            CleanUp((), ("uid-a",), (), ()),
            id="it holds nothing any more: it is asked about",
        ),
        pytest.param(
            picture(desired={"uid-a": A}, undecided={"uid-a"}, admitted={"uid-a"}),
            NOTHING,
            id="trap 33: undecided",
        ),
        pytest.param(
            picture(desired={"uid-a": A}, ended={"uid-a"}), NOTHING, id="rejected: inactive"
        ),
        pytest.param(
            picture(desired={"uid-a": A}, works={"uid-a": work_of(A)}), NOTHING, id="it has one"
        ),
        pytest.param(
            picture(desired={"uid-a": GOING}),
            CleanUp((), (), ("uid-a",), ()),
            id="HSK-6, trap 36: rejected, and deleted",
        ),
        pytest.param(
            picture(desired={"uid-a": GOING}, runtime=in_runtime(A, ended(A))),
            NOTHING,
            id="HSK-6: not while the runtime has something",
        ),
        pytest.param(
            picture(runtime=in_runtime(A, found(A))),
            CleanUp((), (), (), ("uid-a",)),
            id="HSK-7: it runs, and nobody knows it",
        ),
        pytest.param(
            picture(desired={"uid-a": A}, ended={"uid-a"}, runtime=in_runtime(A, found(A))),
            CleanUp((), (), (), ("uid-a",)),
            id="rejected after a restart, and still running",
        ),
        pytest.param(
            picture(desired={"uid-a": A}, undecided={"uid-a"}, runtime=in_runtime(A, found(A))),
            NOTHING,
            id="undecided after a restart, and running",
        ),
        pytest.param(picture(runtime=in_runtime(A, ended(A))), NOTHING, id="dead already"),
    ],
)
def test_clean_up(seen: Picture, expected: CleanUp) -> None:
    assert clean_up(seen) == expected


def test_gauges() -> None:
    """HSK-8."""
    static, orphan, stray = pod("s", source="file"), pod("o"), pod("x")
    orphan_work = work_of(orphan)
    stray_work = first_work(
        Update(UpdateKind.KILL, stray, kill=Kill(grace=1), orphan=True), 1.0, runtime_idle=False
    )
    told = counts(
        picture(
            desired={"uid-a": A, "uid-s": static, "uid-r": pod("r")},
            works={"uid-s": work_of(static), "uid-o": orphan_work, "uid-x": stray_work},
            ended={"uid-r"},
        )
    )

    assert told.desired == {"true": 1, "": 2}
    assert told.active == {"true": 1, "": 1}
    assert {key: number for key, number in told.working.items() if number} == {
        ("sync", "desired", "true"): 1,
        ("sync", "orphan", ""): 1,
        ("terminating", "runtime_only", "unknown"): 1,
    }
    assert len(told.working) == 15
