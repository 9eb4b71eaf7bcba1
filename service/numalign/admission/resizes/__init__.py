"""Pending resizes: which come first, and what an answer to one changes. Pure.

Whoever keeps the queue (RES-2, RES-3) holds a `ResizeState`, puts a pod into it with `queued`,
asks Admission about each UID of `state.queue` in order, and takes the answer over with
`answered`; `evaluated` is all of that over a function. The allocations are those of Admission's
record.
"""

from numalign.admission.resizes.conditions import ResizeCondition, ResizeEvent
from numalign.admission.resizes.evaluation import (
    AskChain,
    Evaluated,
    ResizeState,
    answered,
    evaluated,
    is_pending,
    queued,
    settled,
)

__all__ = [
    "AskChain",
    "Evaluated",
    "ResizeCondition",
    "ResizeEvent",
    "ResizeState",
    "answered",
    "evaluated",
    "is_pending",
    "queued",
    "settled",
]
