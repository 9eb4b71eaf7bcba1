"""The `journal` part of the `numalign` section: how much is kept of what was decided."""

from __future__ import annotations

from numalign.config.settings import JournalSettings
from numalign.document.section import Section, shown

SMALLEST = 64 << 10
"""Bytes; less would hold next to nothing."""

LARGEST = 1 << 30
"""Bytes; all of it is read to answer a question."""


def read_journal(section: Section) -> JournalSettings:
    """The journal; mistakes are recorded and the default returned for them."""
    section.refuse_unknown(("size",))
    default = JournalSettings()
    given = section.quantity("size") if "size" in section else None
    if given is None:
        return default
    size = given.as_int64()
    if size is None or not (size == 0 or SMALLEST <= size <= LARGEST):
        section.wrong("size", f"must be 0, or 64Ki to 1Gi, not {shown(section.raw('size'))}")
        return default
    return JournalSettings(size=size)
