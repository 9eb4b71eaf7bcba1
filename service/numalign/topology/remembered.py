"""How the last decisions were reached, until somebody asks; a small part of memory.

Separate from the decision, which must not take longer because it may be explained later: what
is needed for an explanation is put aside as it is, and put into words when it is asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Generic, TypeVar

from numalign.model.ids import PodUid
from numalign.topology.wording import Explaining

MOST = 256

Call = TypeVar("Call")


@dataclass(frozen=True, slots=True)
class Way(Generic[Call]):
    """How a pod was decided on: what puts it into words, and where the policy refused, the call.

    `revision` is that of the record when it was refused.
    """

    explaining: Explaining
    refused: Call | None = None
    revision: int = 0


class Remembered(Generic[Call]):
    """The ways of at most `MOST` pods, the last ones; each is told once."""

    def __init__(self) -> None:
        self._ways: OrderedDict[PodUid, Way[Call]] = OrderedDict()

    def keep(self, pod_uid: PodUid, way: Way[Call]) -> None:
        """Remember how a pod was decided on; the oldest one is forgotten for it."""
        self._ways.pop(pod_uid, None)
        self._ways[pod_uid] = way
        if len(self._ways) > MOST:
            self._ways.popitem(last=False)

    def tell(self, pod_uid: PodUid) -> Way[Call] | None:
        """How a pod was decided on, if that is remembered; from now on it is not."""
        return self._ways.pop(pod_uid, None)
