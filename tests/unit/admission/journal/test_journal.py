"""What the journal keeps of decisions, and how it answers for it."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from numalign.admission.journal.journal import WRITTEN_AFTER_SECONDS, Explanations, Journal
from numalign.admission.journal.segments import Segments, Written
from numalign.errors import InvalidInput, NotFound
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import types_pb2 as pb

SIZE = 64 << 10


class Dropped:
    """Counts."""

    count = 0.0

    def labels(self, *_: str) -> Dropped:
        return self

    def inc(self, amount: float = 1) -> None:
        self.count += amount


async def explained(uids: Sequence[str]) -> Explanations:
    return {uid: pb.Explanation(summary=f"why {uid}") for uid in uids}


def open_journal(directory: Path, dropped: Dropped | None = None) -> Journal:
    return Journal(Segments(directory, SIZE), explained, dropped or Dropped())


def decision(
    name: str,
    verdict: pb.Verdict.ValueType = pb.VERDICT_REJECTED,
    second: int = 1,
    reason: str = "OutOfcpu",
) -> dc.DecisionRecord:
    record = dc.DecisionRecord(
        pod_uid=f"uid-{name}", namespace="ns", name=name, verdict=verdict, owner="kubelet"
    )
    if verdict != pb.VERDICT_ADMITTED:
        record.reason, record.handler = reason, "predicates"
        record.explanation.summary = "because"
    record.last_time.seconds = second
    return record


async def names(journal: Journal, **wanted: object) -> list[str]:
    request = dc.ListDecisionsRequest(filter=dc.DecisionFilter(**wanted))  # type: ignore[arg-type]
    return [record.name for record in (await journal.list(request)).decisions]


async def test_the_newest_comes_first_and_survives_a_restart(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.note(decision("a"))
    journal.note(decision("b", pb.VERDICT_ADMITTED))
    await journal.close()
    journal = open_journal(tmp_path)
    journal.note(decision("c"))
    assert await names(journal) == ["c", "b", "a"]
    found = await journal.get(dc.GetDecisionRequest(pod="c"))
    assert found.number == 3
    await journal.close()


async def test_who_decided_explains_it(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.note(decision("a", pb.VERDICT_ADMITTED))
    journal.note(decision("b"))
    theirs = decision("c")
    theirs.handler = "topology-manager"
    journal.note(theirs)
    summaries = [
        (await journal.get(dc.GetDecisionRequest(pod=pod))).explanation.summary
        for pod in ("ns/a", "uid-b", "c")
    ]
    assert summaries == ["why uid-a", "because", "why uid-c"]
    listed = await journal.list(dc.ListDecisionsRequest())
    assert not any(record.HasField("explanation") for record in listed.decisions)
    listed = await journal.list(dc.ListDecisionsRequest(with_explanations=True))
    assert all(record.HasField("explanation") for record in listed.decisions)
    await journal.close()


async def test_a_reader_that_hangs_up_takes_nothing_with_it(tmp_path: Path) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(uids: Sequence[str]) -> Explanations:
        asked.set()
        await go_on.wait()
        return await explained(uids)

    journal = Journal(Segments(tmp_path, SIZE), slowly, Dropped())
    journal.note(decision("a", pb.VERDICT_ADMITTED))
    reading = asyncio.create_task(names(journal))
    await asked.wait()
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    go_on.set()
    assert await names(journal) == ["a"]
    await journal.close()


@pytest.mark.parametrize("written_between", [False, True])
async def test_the_same_answer_again_is_counted(tmp_path: Path, written_between: bool) -> None:
    journal = open_journal(tmp_path)
    for second in (1, 2, 3):
        journal.note(decision("a", pb.VERDICT_DEFERRED, second, "ProviderNotReady"))
        if written_between:
            await journal.flush()
    journal.note(decision("a", pb.VERDICT_REJECTED, 4))
    rejected, deferred = (await journal.list(dc.ListDecisionsRequest())).decisions
    assert (deferred.times, deferred.first_time.seconds, deferred.last_time.seconds) == (3, 1, 3)
    assert (rejected.times, rejected.reason) == (1, "OutOfcpu")
    await journal.close()


async def test_what_is_said_again_stays_after_its_first_record_is_gone(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.note(decision("stubborn"))
    for i in range(300):
        filler = decision(f"p{i}")
        filler.explanation.summary = "x" * 1000
        journal.note(filler)
        await journal.flush()
    assert "stubborn" not in await names(journal)
    journal.note(decision("stubborn"))
    assert (await journal.get(dc.GetDecisionRequest(pod="stubborn"))).times == 1
    await journal.close()


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param({"verdicts": [pb.VERDICT_ADMITTED]}, ["b"], id="verdict"),
        pytest.param({"reasons": ["TopologyAffinityError"]}, ["c"], id="reason"),
        pytest.param({"pod": "ns/a"}, ["a"], id="pod"),
        pytest.param({"pod": "other/a"}, [], id="another-namespace"),
        pytest.param({"owner": "kubelet"}, ["c", "b", "a"], id="owner"),
        pytest.param({"owner": "run"}, [], id="another-owner"),
        pytest.param({"since": {"seconds": 20}}, ["c", "b"], id="since"),
        pytest.param({"until": {"seconds": 20}}, ["a"], id="until"),
    ],
)
async def test_filters(tmp_path: Path, wanted: dict[str, object], expected: list[str]) -> None:
    journal = open_journal(tmp_path)
    journal.note(decision("a", second=10))
    journal.note(decision("b", pb.VERDICT_ADMITTED, 20))
    journal.note(decision("c", second=30, reason="TopologyAffinityError"))
    assert await names(journal, **wanted) == expected
    await journal.close()


async def test_the_limit_says_how_many_are_left_out(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    for i in range(5):
        journal.note(decision(f"p{i}", second=i + 1))
    answer = await journal.list(dc.ListDecisionsRequest(limit=2))
    assert [record.name for record in answer.decisions] == ["p4", "p3"]
    assert (answer.left_out, answer.kept_since.seconds) == (3, 1)
    await journal.close()


async def test_bad_questions(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    with pytest.raises(InvalidInput, match=r"filter.verdicts\[0\]: unknown verdict 9"):
        await journal.list(
            dc.ListDecisionsRequest(filter=dc.DecisionFilter(verdicts=[9]))  # type: ignore[list-item]
        )
    with pytest.raises(NotFound, match='the journal has no decision on "x": it is empty'):
        await journal.get(dc.GetDecisionRequest(pod="x"))
    journal.note(decision("a"))
    with pytest.raises(NotFound, match=r"no decision 7: it has 1 decision and goes back to 1970"):
        await journal.get(dc.GetDecisionRequest(number=7))
    await journal.close()


async def test_a_long_explanation_loses_its_merges_not_its_reason(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    record = decision("a")
    for _ in range(2000):
        record.explanation.merges.add(container="some-container")
    journal.note(record)
    found = await journal.get(dc.GetDecisionRequest(pod="a"))
    assert not found.explanation.merges
    assert found.explanation.summary.startswith("because (Merges and calls are left out")
    await journal.close()


async def test_a_full_disk_costs_decisions_and_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped = Dropped()
    journal = open_journal(tmp_path, dropped)

    def full(self: Segments, entries: Iterable[dc.JournalEntry]) -> Written:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Segments, "append", full)
        journal.note(decision("lost"))
        assert await names(journal) == []
    assert dropped.count == 1
    journal.note(decision("kept"))
    assert await names(journal) == ["kept"]
    await journal.close()


async def test_many_at_once_are_written_before_their_ways_are_forgotten(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    for i in range(70):
        journal.note(decision(f"p{i}", pb.VERDICT_ADMITTED))
    async with asyncio.timeout(WRITTEN_AFTER_SECONDS * 600):
        while not (tmp_path / "decisions.log").exists():  # noqa: ASYNC110 - no event says it
            await asyncio.sleep(0.001)
    await journal.close()


@pytest.mark.parametrize("damage", ["gone", "changed"])
async def test_what_the_files_hold_counts_where_somebody_has_changed_them(
    tmp_path: Path, damage: str
) -> None:
    journal = open_journal(tmp_path)
    journal.note(decision("a"))
    journal.note(decision("b"))
    assert await names(journal) == ["b", "a"]
    file = tmp_path / "decisions.log"
    if damage == "gone":
        file.unlink()
    else:
        data = bytearray(file.read_bytes())
        data[-1] ^= 0xFF
        file.write_bytes(bytes(data))
    assert await names(journal) == ([] if damage == "gone" else ["a"])
    journal.note(decision("c"))
    assert (await journal.get(dc.GetDecisionRequest(pod="c"))).number == 3
    await journal.close()
