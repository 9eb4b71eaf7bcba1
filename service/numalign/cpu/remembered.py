"""What becomes of a combination that is remembered by reference.

The kubelet remembers the best combination as a reference into a buffer which its enumerator
goes on writing. Identical placements need the same effect. Rule CPU-65a.
"""

from __future__ import annotations

from typing import TypeAlias

Combination: TypeAlias = tuple[int, ...]


class Remembered:
    """The kept combination of one enumeration of combinations of `size` elements.

    The first `prefix` elements of what is kept stay as they are; the tail is that of the
    last generated combination that begins with them.
    """

    __slots__ = ("_head", "_prefix", "value")

    def __init__(self, size: int) -> None:
        # Storage grows to 1, 2, 4, 8, 16 ... elements: combinations share the last growth.
        shared = (1 << (size - 1).bit_length() - 1) + 1 if size > 1 else size
        self._prefix = shared if shared < size else 0
        self._head: Combination | None = None
        self.value: Combination | None = None

    def generated(self, combination: Combination) -> None:
        """The enumerator wrote `combination`, whether or not it is looked at."""
        if self._head is not None and combination[: self._prefix] == self._head:
            self.value = combination

    def keep(self, combination: Combination) -> None:
        """`combination`, just generated, is the best one so far."""
        self.value = combination
        if self._prefix:
            self._head = combination[: self._prefix]
