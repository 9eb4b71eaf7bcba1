"""What differs between two versions of a payload: one run of bytes.

Pure. Separate from the store, which keeps changes instead of whole payloads, so that an admission
writes no more where many pods are on the node.
"""

from __future__ import annotations

from dataclasses import dataclass

_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class ByteChange:
    """`front` bytes and the last `back` bytes stay; what was between them is now `middle`."""

    front: int
    back: int
    middle: bytes

    def applied(self, before: bytes) -> bytes:
        """The version after `before`."""
        return before[: self.front] + self.middle + before[len(before) - self.back :]


def change_between(before: bytes, after: bytes) -> ByteChange:
    """The least single run of bytes that leads from one version to the next."""
    shorter = min(len(before), len(after))
    front = _common_front(before, after, shorter)
    back = _common_back(before, after, shorter - front)
    return ByteChange(front, back, after[front : len(after) - back])


def _common_front(a: bytes, b: bytes, most: int) -> int:
    same = 0
    while same < most:
        size = min(_BLOCK, most - same)
        left, right = a[same : same + size], b[same : same + size]
        if left != right:
            different = int.from_bytes(left, "big") ^ int.from_bytes(right, "big")
            return same + size - (different.bit_length() + 7) // 8
        same += size
    return same


def _common_back(a: bytes, b: bytes, most: int) -> int:
    same = 0
    while same < most:
        size = min(_BLOCK, most - same)
        left = a[len(a) - same - size : len(a) - same]
        right = b[len(b) - same - size : len(b) - same]
        if left != right:
            different = int.from_bytes(left, "little") ^ int.from_bytes(right, "little")
            return same + size - (different.bit_length() + 7) // 8
        same += size
    return same
