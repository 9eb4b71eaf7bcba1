"""The JSON of the entries of many pods, made anew only for those that have changed.

Books are kept as a whole, and an admission changes the entry of one pod: with a thousand pods
on the node, nearly all of the text is the one that was made before. Separate from the engines,
which say how an entry looks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import msgspec

from numalign.model.ids import PodUid

V = TypeVar("V")


class EntryJson(Generic[V]):
    """Remembers the JSON of the entries that it was asked for last.

    Entries are values that are replaced and never changed, so the same object is the same text.
    They stand in the order of the mapping, or in that of their pods where it is `ordered`.
    """

    def __init__(self, encode: Callable[[V], bytes], *, ordered: bool = False) -> None:
        self._encode = encode
        self._ordered = ordered
        self._entries: dict[PodUid, V] = {}
        self._texts: dict[PodUid, bytes] = {}
        self._order: list[PodUid] = []

    def of(self, entries: Mapping[PodUid, V]) -> msgspec.Raw:
        """The JSON of the entries, as an object by pod."""
        before = self._entries
        changed = [uid for uid, entry in entries.items() if before.get(uid) is not entry]
        for uid in changed:
            self._texts[uid] = msgspec.json.encode(uid) + b":" + self._encode(entries[uid])
        self._entries = dict(entries)
        if self._ordered:
            self._sort(changed)
        elif [*self._texts] != [*entries]:
            self._texts = {uid: self._texts[uid] for uid in entries}
        texts = map(self._texts.__getitem__, self._order) if self._ordered else self._texts.values()
        return msgspec.Raw(b"{%b}" % b",".join(texts))

    def _sort(self, changed: list[PodUid]) -> None:
        if len(self._texts) != len(self._entries):
            self._texts = {uid: self._texts[uid] for uid in self._entries}
            self._order = [uid for uid in self._order if uid in self._texts]
        for uid in changed:
            place = bisect_left(self._order, uid)
            if place == len(self._order) or self._order[place] != uid:
                self._order.insert(place, uid)
