"""The journal's files: bounded, sound after every end, one process's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from numalign.admission.journal.segments import Segments
from numalign.errors import StateError
from numalign.v1 import decisions_pb2 as dc

SIZE = 64 << 10


def entry(number: int, text: str = "") -> dc.JournalEntry:
    return dc.JournalEntry(decision=dc.DecisionRecord(number=number, message=text))


def numbers(segments: Segments) -> list[int]:
    return [kept.entry.decision.number for kept in segments.read()]


def test_what_is_written_is_read_by_the_next_process(tmp_path: Path) -> None:
    first = Segments(tmp_path / "journal", SIZE)
    assert not first.append([entry(1), entry(2)]).full
    first.close()
    second = Segments(tmp_path / "journal", SIZE)
    assert numbers(second) == [1, 2]
    assert second.cut_off == 0
    second.close()


def test_the_files_stay_below_the_size_and_keep_the_newest(tmp_path: Path) -> None:
    segments = Segments(tmp_path, SIZE)
    rotations = sum(segments.append([entry(i, "x" * 1000)]).full for i in range(1, 501))
    assert rotations > 5
    found = numbers(segments)
    assert found == list(range(found[0], 501))
    assert len(found) > 20
    total = sum(p.stat().st_size for p in (segments.newer, segments.older) if p.exists())
    assert total <= SIZE + 2000
    segments.close()


def test_the_files_are_for_their_user_alone(tmp_path: Path) -> None:
    segments = Segments(tmp_path, SIZE)
    segments.append([entry(1)])
    fresh = segments.newer.stat().st_mode & 0o777
    segments.newer.chmod(0o644)
    segments.close()
    again = Segments(tmp_path, SIZE)
    kept = again.newer.stat().st_mode & 0o777
    again.close()

    assert (fresh, kept) == (0o600, 0o600)


@pytest.mark.parametrize("cut", [1, 5, 9, 11])
def test_a_torn_end_is_cut_off_and_what_follows_is_sound(tmp_path: Path, cut: int) -> None:
    segments = Segments(tmp_path, SIZE)
    segments.append([entry(1)])
    whole = segments.newer.stat().st_size
    segments.append([entry(2, "abc")])
    segments.close()
    data = segments.newer.read_bytes()
    segments.newer.write_bytes(data[: len(data) - cut])
    again = Segments(tmp_path, SIZE)
    assert again.cut_off == len(data) - cut - whole
    again.append([entry(3)])
    assert numbers(again) == [1, 3]
    again.close()


def test_a_changed_byte_ends_what_is_believed(tmp_path: Path) -> None:
    segments = Segments(tmp_path, SIZE)
    segments.append([entry(1, "first"), entry(2, "second")])
    segments.close()
    data = bytearray(segments.newer.read_bytes())
    data[-1] ^= 0xFF
    segments.newer.write_bytes(bytes(data))
    again = Segments(tmp_path, SIZE)
    assert numbers(again) == [1]
    again.close()


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    segments = Segments(tmp_path, SIZE)
    with pytest.raises(StateError, match="held by another process"):
        Segments(tmp_path, SIZE)
    segments.close()


def test_a_directory_that_cannot_be_made_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match=r"journal .*/file/journal: .*numalign.journal.size 0"):
        Segments(tmp_path / "file" / "journal", SIZE)
