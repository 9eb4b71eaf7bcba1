"""The health of devices (DRA-35 to DRA-38)."""

from __future__ import annotations

import pytest

from numalign.dra.health import Device, Health, HealthBook, Report, Source, cut

OLD, NEW = Source("d", "/old.sock"), Source("d", "/new.sock")
X, Y = Device("p", "x"), Device("p", "y")
WELL, ILL = Report(Health.HEALTHY), Report(Health.UNHEALTHY, "hot")


def word(book: HealthBook, device: Device, now: float) -> Health | None:
    report = book.of("d", device, now)
    return None if report is None else report.health


def test_a_word_holds_for_its_time() -> None:
    book = HealthBook().heard(OLD, {X: Report(Health.UNHEALTHY, "hot", 5.0), Y: WELL}, 0.0)

    assert book.of("d", X, 5.0) == Report(Health.UNHEALTHY, "hot", 5.0)
    assert word(book, X, 5.1) is Health.UNKNOWN
    assert word(book, Y, 30.0) is Health.HEALTHY
    assert word(book, Y, 30.1) is Health.UNKNOWN


def test_devices_that_a_message_leaves_out_keep_their_word() -> None:
    book = HealthBook().heard(OLD, {X: ILL}, 0.0).heard(OLD, {Y: WELL}, 1.0)

    assert word(book, X, 2.0) is Health.UNHEALTHY


def test_a_driver_that_says_nothing_is_not_judged() -> None:
    book = HealthBook().heard(Source("other", "/o.sock"), {X: WELL}, 0.0)

    assert book.of("d", X, 0.0) is None
    assert word(book.heard(OLD, {Y: WELL}, 0.0), X, 0.0) is Health.UNKNOWN


def test_the_end_of_one_stream_takes_only_its_own_words() -> None:
    """DRA-T14: the old instance of a driver goes after the new one has spoken."""
    book = HealthBook().heard(OLD, {X: ILL}, 0.0).heard(NEW, {X: WELL}, 1.0)

    assert word(book, X, 2.0) is Health.HEALTHY
    assert word(book.ended(OLD), X, 2.0) is Health.HEALTHY
    assert word(book.ended(NEW), X, 2.0) is Health.UNHEALTHY
    assert book.ended(OLD).ended(NEW).of("d", X, 2.0) is None


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param("a" * 1024, "a" * 1024, id="fits"),
        pytest.param("a" * 1025, "a" * 1021 + "...", id="too long"),
        pytest.param("a" * 1020 + "äöü", "a" * 1020 + "...", id="DRA-T13"),
    ],
)
def test_long_messages(message: str, expected: str) -> None:
    assert cut(message) == expected
    assert len(cut(message).encode()) <= 1024
