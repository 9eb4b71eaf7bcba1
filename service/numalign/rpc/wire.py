"""Reading one field of a serialised message without parsing the rest.

The Admission service hands a pod on to the providers byte for byte; a parsed message would be
written anew, with its fields in another order than the caller's.
"""

from __future__ import annotations

_VARINT, _FIXED64, _LENGTH, _GROUP, _END_GROUP, _FIXED32 = range(6)


def field_bytes(data: bytes, number: int) -> bytes | None:
    """The contents of length-delimited field `number` of `data`; None if it is not there.

    A field that occurs more than once is concatenated, which is how protobuf merges
    messages. What stands inside a group, which only an unknown field can be, is not looked
    at. `data` must have been parsed before: malformed bytes give a ValueError.
    """
    found: list[bytes] = []
    position = depth = 0
    while position < len(data):
        tag, position = _varint(data, position)
        kind = tag & 7
        if kind == _LENGTH:
            length, position = _varint(data, position)
            if tag >> 3 == number and not depth:
                found.append(data[position : position + length])
            position += length
        elif kind == _VARINT:
            _, position = _varint(data, position)
        elif kind == _FIXED64:
            position += 8
        elif kind == _FIXED32:
            position += 4
        elif kind == _GROUP:
            depth += 1
        elif kind == _END_GROUP:
            depth -= 1
        else:
            raise ValueError(f"unsupported wire type {kind}")
    if not found:
        return None
    return found[0] if len(found) == 1 else b"".join(found)


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data):
            raise ValueError("truncated varint")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
