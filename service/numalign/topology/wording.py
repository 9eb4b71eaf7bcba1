"""When and where an explanation is put into words: when the turn is over, long ones in a thread.

Separate from the explainer, which says what the words are: a pod of many containers has a merge
for each, and whoever waits for the turn, or for an answer of this process, does not wait until all
of them were looked at again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from numalign.errors import NumalignError
from numalign.v1 import types_pb2 as pb

MOST_AT_ONCE = 8
"""Of so many merges the words are made at once: a thread would take longer to begin."""


@dataclass(frozen=True, slots=True)
class Explaining:
    """An explanation that is still to be put into `words`, which are about so many merges."""

    words: Callable[[str], pb.Explanation]
    merges: int = 0

    async def done(self, elsewhere: str = "") -> pb.Explanation:
        """The explanation; where it cannot be made it says why, since the decision stands.

        `elsewhere` is what else would have taken a pod that was refused, as part of a sentence.
        """
        try:
            if self.merges > MOST_AT_ONCE:
                return await asyncio.to_thread(self.words, elsewhere)
            return self.words(elsewhere)
        except NumalignError as error:
            return unexplained(error)


def unexplained(error: NumalignError, _elsewhere: str = "") -> pb.Explanation:
    """What is said instead of an explanation."""
    return pb.Explanation(summary=f"Could not be explained: {error}")
