"""The number of a record that begins. Separate from what is made of it, which is pure."""

from __future__ import annotations

import secrets

from numalign.model.revision import RECORD_BITS, first_of_record


def new_record() -> int:
    """The revision at which a record begins that is not the continuation of any other."""
    return first_of_record(1 + secrets.randbelow((1 << RECORD_BITS) - 1))
