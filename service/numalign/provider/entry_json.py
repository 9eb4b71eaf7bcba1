"""The JSON of the entries of many pods, made anew only for those that have changed.

Books are kept as a whole, and an admission changes the entry of one pod: with a thousand pods
on the node, nearly all of the text is the one that was made before. Separate from the engines,
which say how an entry looks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import msgspec

from numalign.model.ids import PodUid

V = TypeVar("V")


class EntryJson(Generic[V]):
    """Remembers the JSON of the entries that it was asked for last.

    Entries are values that are replaced and never changed, so the same object is the same text.
    """

    def __init__(self, encode: Callable[[V], bytes]) -> None:
        self._encode = encode
        self._entries: dict[PodUid, V] = {}
        self._texts: dict[PodUid, bytes] = {}

    def of(self, entries: Mapping[PodUid, V]) -> msgspec.Raw:
        """The JSON of the entries, as an object by pod, in the order of the mapping."""
        before = self._entries
        for uid in [uid for uid, entry in entries.items() if before.get(uid) is not entry]:
            self._texts[uid] = msgspec.json.encode(uid) + b":" + self._encode(entries[uid])
        self._entries = dict(entries)
        if [*self._texts] != [*entries]:
            self._texts = {uid: self._texts[uid] for uid in entries}
        return msgspec.Raw(b"{%b}" % b",".join(self._texts.values()))
