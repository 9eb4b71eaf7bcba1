"""The index finds what a look at every entry would, and no file is read as a whole for it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.admission.journal.index import DecisionIndex
from numalign.admission.journal.lookup import got, listed
from numalign.admission.journal.segments import Segments
from numalign.admission.journal.selection import is_of_pod
from numalign.errors import NotFound
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import types_pb2 as pb

SIZE = 64 << 10
PODS = ("a", "b", "c")
REASONS = ("", "OutOfcpu", "TopologyAffinityError")
OWNERS = ("kubelet", "run")
VERDICTS = (pb.VERDICT_ADMITTED, pb.VERDICT_REJECTED, pb.VERDICT_DEFERRED)
SECONDS = st.integers(1, 9)


@st.composite
def histories(draw: st.DrawFn) -> list[list[dc.JournalEntry]]:
    """What is written, in batches; some are long, so that files are let go of."""
    batches: list[list[dc.JournalEntry]] = []
    number = 0
    for _ in range(draw(st.integers(1, 8))):
        batch = []
        for _ in range(draw(st.integers(1, 4))):
            second = draw(SECONDS)
            if number and draw(st.booleans()):
                again = dc.DecisionAgain(
                    number=draw(st.integers(1, number)), times=draw(st.integers(2, 9))
                )
                again.last_time.seconds = second
                batch.append(dc.JournalEntry(again=again))
                continue
            number += 1
            name = draw(st.sampled_from(PODS))
            record = dc.DecisionRecord(
                number=number,
                pod_uid=f"uid-{name}",
                namespace=draw(st.sampled_from(("n", "m"))),
                name=name,
                owner=draw(st.sampled_from(OWNERS)),
                verdict=draw(st.sampled_from(VERDICTS)),
                reason=draw(st.sampled_from(REASONS)),
                times=1,
                message="x" * draw(st.sampled_from((0, 0, 12000))),
            )
            record.first_time.seconds = record.last_time.seconds = second
            batch.append(dc.JournalEntry(decision=record))
        batches.append(batch)
    return batches


@st.composite
def filters(draw: st.DrawFn) -> dc.DecisionFilter:
    wanted = dc.DecisionFilter(
        verdicts=draw(st.lists(st.sampled_from(VERDICTS), max_size=2)),
        reasons=draw(st.lists(st.sampled_from((*REASONS, "Unknown")), max_size=2)),
        pod=draw(st.sampled_from(("", "a", "uid-b", "n/c", "m/a", "nobody"))),
        owner=draw(st.sampled_from(("", *OWNERS, "nobody"))),
    )
    if draw(st.booleans()):
        wanted.since.seconds = draw(SECONDS)
    if draw(st.booleans()):
        wanted.until.seconds = draw(SECONDS)
    return wanted


def all_of(segments: Segments) -> list[dc.DecisionRecord]:
    """Every decision of the files as it is by now, by a look at all entries."""
    records: dict[int, dc.DecisionRecord] = {}
    for kept in segments.read():
        entry = kept.entry
        if entry.HasField("decision"):
            records[entry.decision.number] = entry.decision
        elif entry.again.number in records:
            records[entry.again.number].times = entry.again.times
            records[entry.again.number].last_time.CopyFrom(entry.again.last_time)
    return list(records.values())


def lets_through(wanted: dc.DecisionFilter, record: dc.DecisionRecord) -> bool:
    return (
        (not wanted.verdicts or record.verdict in wanted.verdicts)
        and (not wanted.reasons or record.reason in wanted.reasons)
        and (not wanted.pod or is_of_pod(record, wanted.pod))
        and (not wanted.owner or record.owner == wanted.owner)
        and (not wanted.HasField("since") or record.last_time.seconds >= wanted.since.seconds)
        and (not wanted.HasField("until") or record.first_time.seconds < wanted.until.seconds)
    )


@settings(deadline=None)
@given(batches=histories(), wanted=filters(), limit=st.integers(1, 4))
def test_the_index_finds_what_a_look_at_everything_finds(
    batches: Sequence[Sequence[dc.JournalEntry]], wanted: dc.DecisionFilter, limit: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        segments = Segments(Path(name), SIZE)
        index = DecisionIndex(segments.read())
        for batch in batches:
            written = segments.append(batch)
            for entry, position in zip(batch, written.positions, strict=True):
                index.note(entry, position)
            if written.full:
                index.let_go_of_older()
        for known in (index, DecisionIndex(segments.read())):
            records = all_of(segments)
            assert len(known) == len(records)
            expected = [record for record in records if lets_through(wanted, record)]
            expected.sort(key=lambda r: (r.last_time.seconds, r.number), reverse=True)
            request = dc.ListDecisionsRequest(filter=wanted, limit=limit)
            answer = listed(known, segments, request)
            assert list(answer.decisions) == expected[:limit]
            assert answer.left_out == max(0, len(expected) - limit)
            for record in records:
                asked = dc.GetDecisionRequest(number=record.number)
                assert got(known, segments, asked) == record
        segments.close()


@pytest.fixture
def segments(tmp_path: Path) -> Iterator[Segments]:
    kept = Segments(tmp_path, SIZE)
    yield kept
    kept.close()


def decision(number: int, name: str) -> dc.JournalEntry:
    record = dc.DecisionRecord(number=number, pod_uid=f"uid-{name}", namespace="n", name=name)
    record.first_time.seconds = record.last_time.seconds = number
    return dc.JournalEntry(decision=record)


def test_two_names_with_one_checksum_are_told_apart(segments: Segments) -> None:
    # These two have the same CRC-32.
    mine, other = "plumless", "buckeroo"
    segments.append([decision(1, mine), decision(2, other), decision(3, "third")])
    index = DecisionIndex(segments.read())

    assert len(index.found(dc.DecisionFilter(pod=mine))) == 2
    assert got(index, segments, dc.GetDecisionRequest(pod=mine)).number == 1
    (only,) = listed(
        index, segments, dc.ListDecisionsRequest(filter=dc.DecisionFilter(pod=other))
    ).decisions
    assert only.number == 2


def test_only_what_is_asked_for_is_read(
    segments: Segments, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments.append([decision(number, f"p{number}") for number in range(1, 101)])
    index = DecisionIndex(segments.read())
    read: list[int] = []
    read_at = Segments.read_at

    def noted(self: Segments, places: Sequence[object]) -> list[dc.JournalEntry]:
        read.append(len(places))
        return read_at(self, places)  # type: ignore[arg-type]

    monkeypatch.setattr(Segments, "read_at", noted)
    monkeypatch.setattr(Segments, "read", None)

    assert got(index, segments, dc.GetDecisionRequest(pod="n/p7")).number == 7
    assert got(index, segments, dc.GetDecisionRequest(number=8)).name == "p8"
    with pytest.raises(NotFound, match="it has 100 decisions and goes back to 1970"):
        got(index, segments, dc.GetDecisionRequest(pod="nobody"))
    assert len(listed(index, segments, dc.ListDecisionsRequest(limit=3)).decisions) == 3
    assert read == [1, 1, 3]


def test_a_number_that_does_not_go_on_is_left_out(segments: Segments) -> None:
    segments.append([decision(5, "a"), decision(4, "b"), decision(6, "c")])
    index = DecisionIndex(segments.read())

    assert (index.oldest, index.newest, len(index)) == (5, 6, 2)
    assert index.numbered(4) is None
