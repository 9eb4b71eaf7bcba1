"""What a driver's answer to one batch means: which claims are done, and what went wrong.

An answer that is partly good counts as far as it is good (DRA-T17); the text is that of the
first mistake, in a fixed order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from numalign.dra import texts
from numalign.dra.values import ClaimDevice, ClaimInfo, ClaimKey


@dataclass(frozen=True, slots=True)
class Entry:
    """What a driver says of one claim; `error` empty: it is done."""

    error: str = ""
    devices: tuple[ClaimDevice, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """The claims that are done, with their devices, and why the rest is not (None: all are)."""

    done: Mapping[ClaimKey, tuple[ClaimDevice, ...]]
    problem: str | None


def judged(call: str, batch: Sequence[ClaimInfo], entries: Mapping[str, Entry]) -> Judged:
    """Judge the answer to `call` for `batch`; `entries` are by claim UID (DRA-22, DRA-30).

    Claims are missed by UID, not by counting (DRA-T10).
    """
    by_uid = {str(info.uid): info for info in batch}
    done = {
        info.key: entries[uid].devices
        for uid, info in by_uid.items()
        if uid in entries and not entries[uid].error
    }
    unknown = sorted(entries.keys() - by_uid.keys())
    if unknown:
        return Judged(done, texts.unknown_claim(call, unknown[0]))
    for uid, info in by_uid.items():
        if uid in entries and entries[uid].error:
            return Judged(done, texts.claim_failed(call, info.key.name, entries[uid].error))
    missing = by_uid.keys() - entries.keys()
    return Judged(done, texts.skipped(call, len(missing)) if missing else None)
