"""Which of two revisions came later, and which cannot be compared."""

from __future__ import annotations

import pytest

from numalign.model.revision import (
    RECORD_BITS,
    first_of_record,
    has_seen,
    is_after,
    latest,
    same_record,
)

ONE, TWO = first_of_record(1), first_of_record(2)


@pytest.mark.parametrize(
    ("revision", "seen", "after"),
    [
        pytest.param(ONE + 2, ONE + 1, True, id="later"),
        pytest.param(ONE + 1, ONE + 1, False, id="same"),
        pytest.param(ONE + 1, ONE + 2, False, id="earlier"),
        pytest.param(TWO + 1, ONE + 9, False, id="of-another-record"),
        pytest.param(ONE + 9, TWO + 1, False, id="of-a-lost-record"),
    ],
)
def test_a_change_comes_after_another_one_of_its_record(
    revision: int, seen: int, after: bool
) -> None:
    assert is_after(revision, seen) is after


def test_records_are_told_apart() -> None:
    assert same_record(ONE, ONE + 900)
    assert not same_record(ONE + 900, TWO + 950)


@pytest.mark.parametrize(
    ("seen", "revision", "expected"),
    [
        pytest.param(ONE + 3, ONE + 3, True, id="the-last"),
        pytest.param(ONE + 3, ONE + 4, False, id="not-yet"),
        pytest.param(TWO + 9, ONE + 1, False, id="of-a-lost-record"),
        pytest.param(ONE + 9, TWO + 1, False, id="of-another-record"),
        pytest.param(0, 0, True, id="nothing"),
        pytest.param(ONE, 0, True, id="nothing-is-owed"),
    ],
)
def test_who_has_seen_a_revision(seen: int, revision: int, expected: bool) -> None:
    assert has_seen(seen, revision) is expected


@pytest.mark.parametrize(
    ("seen", "told", "expected"),
    [
        pytest.param(ONE + 3, ONE + 2, ONE + 3, id="old-news"),
        pytest.param(ONE + 3, ONE + 4, ONE + 4, id="news"),
        pytest.param(TWO + 9, ONE + 1, ONE + 1, id="the-record-is-another"),
        pytest.param(0, ONE + 1, ONE + 1, id="the-first-word"),
    ],
)
def test_what_was_seen_grows_until_the_record_is_another(
    seen: int, told: int, expected: int
) -> None:
    assert latest(seen, told) == expected


def test_every_revision_is_a_number_that_json_can_hold() -> None:
    assert first_of_record((1 << RECORD_BITS) - 1) + (1 << 32) - 1 < 1 << 53


@pytest.mark.parametrize("number", [0, -1, 1 << RECORD_BITS])
def test_a_number_that_is_no_record_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match=f"record number {number} is not between 1 and 1048575"):
        first_of_record(number)
