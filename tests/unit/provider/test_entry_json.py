"""The JSON of many entries, made piece by piece."""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from numalign.model.ids import PodUid
from numalign.provider.entry_json import EntryJson

Entries = dict[PodUid, dict[str, int]]

STEPS = st.lists(
    st.tuples(st.sampled_from('abcd"é'), st.one_of(st.none(), st.integers(0, 3))), max_size=20
)


def _after(entries: Entries, name: str, value: int | None) -> Entries:
    uid = PodUid(name)
    if value is None:
        return {other: entry for other, entry in entries.items() if other != uid}
    return {**entries, uid: {"c": value}}


@given(steps=STEPS, skipped=st.integers(1, 3))
def test_it_is_the_json_of_the_whole(steps: list[tuple[str, int | None]], skipped: int) -> None:
    entry_json: EntryJson[Mapping[str, int]] = EntryJson(msgspec.json.encode)
    entries: Entries = {}
    for number, (name, value) in enumerate(steps):
        entries = _after(entries, name, value)
        if number % skipped == 0:
            text = bytes(entry_json.of(entries))
            assert json.loads(text) == entries
            assert list(json.loads(text)) == list(entries)


def test_what_has_not_changed_is_not_made_anew() -> None:
    made: list[int] = []

    def encode(entry: int) -> bytes:
        made.append(entry)
        return str(entry).encode()

    entry_json = EntryJson(encode)
    one, two = 1000, 2000
    entry_json.of({PodUid("a"): one})
    entry_json.of({PodUid("a"): one, PodUid("b"): two})

    assert made == [one, two]
