"""What a command's exit code says about the pods it asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum

from numalign.v1 import types_pb2 as pb


class Exit(IntEnum):
    """Exit codes of `admit`."""

    ADMITTED = 0
    ERROR = 1
    USAGE = 2
    REJECTED = 3
    DEFERRED = 4


_BEST_FIRST = (Exit.ADMITTED, Exit.DEFERRED, Exit.REJECTED, Exit.ERROR)

_OF_VERDICT: Mapping[pb.Verdict.ValueType, Exit] = {
    pb.VERDICT_ADMITTED: Exit.ADMITTED,
    pb.VERDICT_REJECTED: Exit.REJECTED,
    pb.VERDICT_DEFERRED: Exit.DEFERRED,
}


def exit_of(verdict: pb.Verdict.ValueType) -> Exit:
    """The code for one pod; a verdict that is none is an error."""
    return _OF_VERDICT.get(verdict, Exit.ERROR)


def worst(codes: Iterable[Exit]) -> Exit:
    """The code for several pods; without any, that of an admission."""
    return max(codes, key=_BEST_FIRST.index, default=Exit.ADMITTED)
