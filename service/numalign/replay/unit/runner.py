"""One unit record replayed: its kind chooses the runner and what is left open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from numalign.replay.compare import differences
from numalign.replay.excuses import (
    Excuse,
    decoder_text,
    nothing,
    parser_text,
    quantity_overflow,
    sort_out,
)
from numalign.replay.players import player_of
from numalign.replay.recordings import Json, Kind, Recording
from numalign.replay.report import Result
from numalign.replay.unit.admission.allocation import allocation_answer, allocation_expected
from numalign.replay.unit.admission.eviction import (
    eviction_admit_answer,
    eviction_series_answer,
    eviction_thresholds_answer,
)
from numalign.replay.unit.admission.features import features_answer, sysctl_answer
from numalign.replay.unit.admission.pod_resources import pod_resources_server_answer
from numalign.replay.unit.admission.predicates import (
    predicates_answer,
    predicates_expected,
    preemption_answer,
)
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
    Kind.PREDICATES: predicates_answer,
    Kind.PREEMPTION: preemption_answer,
    Kind.SYSCTL: sysctl_answer,
    Kind.EVICTION_ADMIT: eviction_admit_answer,
    Kind.EVICTION_THRESHOLDS: eviction_thresholds_answer,
    Kind.EVICTION_SERIES: eviction_series_answer,
    Kind.ADMIT_FEATURES: features_answer,
    Kind.ALLOCATION: allocation_answer,
}
_CALLS: Mapping[Kind, Callable[[Json], Awaitable[Json]]] = {
    Kind.POD_RESOURCES_SERVER: pod_resources_server_answer,
}
_EXPECTED: Mapping[Kind, Callable[[Json], object]] = {
    Kind.ALLOCATION_CHECKPOINT: allocation_checkpoint_expected,
    Kind.ALLOCATION: allocation_expected,
    Kind.PREDICATES: predicates_expected,
}


async def replay_unit(recording: Recording) -> Result:
    """Decide on the record's input and compare with what it expects.

    Raises RecordingError for a kind that only a package plays which is not installed.
    """
    answer: object
    if recording.kind in _CALLS:
        answer = await _CALLS[recording.kind](recording.record)
    elif recording.kind in _ANSWERS:
        answer = _ANSWERS[recording.kind](recording.record)
    else:
        answer = player_of(recording.kind).answer(recording.record)
    failures, excused = sort_out(differences(_expected(recording), answer), _excuse(recording))
    return Result(
        file=recording.file,
        line=recording.line,
        name=recording.name,
        failures=failures,
        excused=excused,
    )


def _expected(recording: Recording) -> object:
    expected = _EXPECTED.get(recording.kind)
    if expected is None and recording.kind not in {*_ANSWERS, *_CALLS}:
        expected = player_of(recording.kind).expected
    return recording.record["expected"] if expected is None else expected(recording.record)


def _excuse(recording: Recording) -> Excuse:
    match recording.kind:
        case Kind.QUANTITY:
            return quantity_overflow(recording.record)
        case Kind.CHECKPOINT:
            return decoder_text
        case Kind.EVICTION_THRESHOLDS:
            return parser_text
        case _:
            return nothing
