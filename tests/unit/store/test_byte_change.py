"""What differs between two versions of a payload."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from numalign.store.byte_change import ByteChange, change_between

PARTS = st.sampled_from([b"", b"a", b"ab", b"b" * 5000, b"a" * 4096, b"\x00", b"\x00" * 4097])
PAYLOADS = st.lists(PARTS, max_size=4).map(b"".join)


@given(before=PAYLOADS, after=PAYLOADS)
def test_it_leads_from_one_version_to_the_next(before: bytes, after: bytes) -> None:
    change = change_between(before, after)

    assert change.applied(before) == after
    assert change.front + change.back <= min(len(before), len(after))


@given(front=PAYLOADS, old=st.integers(0, 3), new=st.integers(0, 3), back=PAYLOADS)
def test_it_holds_no_more_than_what_differs(front: bytes, old: int, new: int, back: bytes) -> None:
    before, after = front + b"x" * old + back, front + b"y" * new + back

    assert len(change_between(before, after).middle) <= new


def test_nothing_differs() -> None:
    assert change_between(b"abc", b"abc") == ByteChange(3, 0, b"")
