"""What a search found, and how two findings of the same size compare.

Separate from the searches, which differ in how they look and not in what is best.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from numalign.families.distances import Distances
from numalign.model.numa_mask import NumaMask


class Ordering(Protocol):
    """How equally good masks compare: by size, then maybe distance, then as integers.

    `distances` is None where they do not count.
    """

    @property
    def distances(self) -> Distances | None:
        """The machine's distances, prepared."""

    def __call__(self, masks: Collection[NumaMask]) -> NumaMask:
        """The best of one or more distinct, non-empty masks."""


@dataclass(frozen=True, slots=True)
class Found:
    """A set of nodes. Not `proved`: a better one of the same size was not excluded."""

    mask: int
    proved: bool = True


@dataclass(slots=True)
class Best:
    """The best so far of sets of one size; `ordering` decides."""

    ordering: Ordering
    mask: int | None = None
    proved: bool = True

    def offer(self, found: Found | None) -> None:
        """Take `found` if it is better."""
        if found is None:
            return
        self.proved = self.proved and found.proved
        if self.mask is None or found.mask == self.mask:
            self.mask = found.mask
        else:
            self.mask = int(self.ordering((NumaMask(self.mask), NumaMask(found.mask))))

    @property
    def found(self) -> Found | None:
        """What is best, None if nothing was found."""
        return None if self.mask is None else Found(self.mask, self.proved)
