"""One unit record replayed: its kind chooses the runner and what is left open."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from numalign.replay.compare import differences
from numalign.replay.excuses import Excuse, decoder_text, nothing, quantity_overflow, sort_out
from numalign.replay.recordings import Json, Kind, Recording
from numalign.replay.report import Result
from numalign.replay.unit.checkpoints import (
    allocation_checkpoint_answer,
    allocation_checkpoint_expected,
    checkpoint_answer,
)
from numalign.replay.unit.cpus import cpu_assignment_answer, cpuset_answer
from numalign.replay.unit.masks import bitmask_answer, merge_answer
from numalign.replay.unit.pods import pod_resources_answer, quantity_answer

_ANSWERS: Mapping[Kind, Callable[[Json], Json]] = {
    Kind.MERGE: merge_answer,
    Kind.CPU_ASSIGNMENT: cpu_assignment_answer,
    Kind.BITMASK: bitmask_answer,
    Kind.CPUSET: cpuset_answer,
    Kind.QUANTITY: quantity_answer,
    Kind.CHECKPOINT: checkpoint_answer,
    Kind.POD_RESOURCES: pod_resources_answer,
    Kind.ALLOCATION_CHECKPOINT: allocation_checkpoint_answer,
}


def replay_unit(recording: Recording) -> Result:
    """Decide on the record's input and compare with what it expects."""
    record = recording.record
    found = differences(_expected(recording), _ANSWERS[recording.kind](record))
    failures, excused = sort_out(found, _excuse(recording))
    return Result(
        file=recording.file,
        line=recording.line,
        name=recording.name,
        failures=failures,
        excused=excused,
    )


def _expected(recording: Recording) -> object:
    if recording.kind is Kind.ALLOCATION_CHECKPOINT:
        return allocation_checkpoint_expected(recording.record)
    return recording.record["expected"]


def _excuse(recording: Recording) -> Excuse:
    match recording.kind:
        case Kind.QUANTITY:
            return quantity_overflow(recording.record)
        case Kind.CHECKPOINT:
            return decoder_text
        case _:
            return nothing
