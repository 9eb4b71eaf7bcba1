"""The UID of a pod that its manifest gives none (CFG-9)."""

from __future__ import annotations

import json
from collections.abc import Mapping

_OFFSET = 0x6C62272E07BB014262B821756295C58D
_PRIME = 0x0000000001000000000000000000013B
_MASK = (1 << 128) - 1


def generated_uid(document: Mapping[str, object], *origin: str) -> str:
    """32 hex digits that depend on the decoded, defaulted pod and on where it comes from.

    Key order, comments and the kind of text do not count; every value does.
    """
    dump = json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return f"{fnv1a_128(''.join((dump, *origin)).encode()):032x}"


def fnv1a_128(data: bytes) -> int:
    """The 128-bit FNV-1a hash of `data`."""
    value = _OFFSET
    for byte in data:
        value = ((value ^ byte) * _PRIME) & _MASK
    return value
