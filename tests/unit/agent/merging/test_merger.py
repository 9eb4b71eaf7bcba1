"""Sets of several sources, sent to the loop one after the other."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone

import pytest
from tests.unit.agent.merging.test_merge import pod

from numalign_agent.changes import Operation, PodChange
from numalign_agent.merging.merger import SourceMerger, seen_text
from numalign_agent.pod import AgentPod
from numalign_agent.status.port import EventType


class Said:
    def __init__(self) -> None:
        self.events: list[tuple[str, EventType, str, str]] = []

    def __call__(self, pod: AgentPod, kind: EventType, reason: str, message: str) -> None:
        self.events.append((pod.uid, kind, reason, message))


async def test_a_source_counts_once_it_has_delivered_even_nothing() -> None:
    queue: asyncio.Queue[PodChange] = asyncio.Queue()
    merger = SourceMerger(queue, Said())
    assert merger.delivered == frozenset()

    await merger.deliver("file", [])
    await merger.deliver("file", [])

    assert merger.delivered == {"file"}
    assert queue.get_nowait() == PodChange(Operation.ADD, "file", ())
    assert queue.empty()


async def test_two_sources_with_the_same_pod_do_not_disturb_each_other() -> None:
    queue: asyncio.Queue[PodChange] = asyncio.Queue()
    said = Said()
    merger = SourceMerger(queue, said)

    await merger.deliver("file", [pod("u")])
    await merger.deliver("api", [pod("u"), pod("v")])
    await merger.deliver("file", [])

    changes = [queue.get_nowait() for _ in range(queue.qsize())]
    assert [(c.operation, c.source, [p.uid for p in c.pods]) for c in changes] == [
        (Operation.ADD, "file", ["u"]),
        (Operation.ADD, "api", ["u"]),
        (Operation.REMOVE, "file", ["u"]),
    ]
    assert said.events == [
        (
            "v",
            EventType.WARNING,
            "FailedValidation",
            'Error validating pod a_default(v) from api due to duplicate pod name "a", ignoring',
        )
    ]


async def test_no_set_overtakes_another_while_the_queue_is_full() -> None:
    queue: asyncio.Queue[PodChange] = asyncio.Queue(1)
    merger = SourceMerger(queue, Said())

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(merger.deliver("api", [pod("u")]))
        await asyncio.sleep(0)
        tasks.create_task(merger.deliver("api", [pod("w")]))
        tasks.create_task(merger.deliver("api", [pod("u")]))
        await asyncio.sleep(0)
        assert queue.full()
        seen = [await queue.get() for _ in range(5)]

    assert [(c.operation, [p.uid for p in c.pods]) for c in seen] == [
        (Operation.ADD, ["u"]),
        (Operation.REMOVE, ["u"]),
        (Operation.ADD, ["w"]),
        (Operation.REMOVE, ["w"]),
        (Operation.ADD, ["u"]),
    ]


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        pytest.param(UTC, "2026-01-02T03:04:05.006007000Z", id="utc"),
        pytest.param(
            timezone(timedelta(hours=-3, minutes=-30)),
            "2026-01-02T03:04:05.006007000-03:30",
            id="offset",
        ),
    ],
)
def test_a_moment_has_nine_digits_and_an_offset(zone: timezone, text: str) -> None:
    assert seen_text(datetime(2026, 1, 2, 3, 4, 5, 6007, tzinfo=zone)) == text
