"""One scenario replayed and compared."""

from __future__ import annotations

from numalign.config.settings import Compatibility
from numalign.replay.compare import differences
from numalign.replay.driver import Driver
from numalign.replay.excuses import scenario_excuse, sort_out
from numalign.replay.expected import recorded_results
from numalign.replay.history import History
from numalign.replay.recordings import Json, Recording
from numalign.replay.report import Result


async def replay_scenario(recording: Recording, driver: Driver) -> Result:
    """Replay under `compatibility: kubelet`, where everything recorded must come again.

    Raises RecordingError for a scenario that cannot be understood.
    """
    scenario = recording.record
    replayed = await History(scenario, driver, Compatibility.KUBELET).run()
    recorded = recorded_results(scenario)
    found = list(differences(*until_end(recorded, replayed)))
    failures, excused = sort_out(found, scenario_excuse(scenario))
    return Result(
        file=recording.file,
        line=recording.line,
        name=recording.name,
        failures=failures,
        excused=excused,
    )


def until_end(recorded: Json, replayed: Json) -> tuple[Json, Json]:
    """Both results up to where the replay ended before its time, with the reason alone.

    A history ends where a call fails or a start is refused, and what was recorded after that
    says nothing.
    """
    steps = replayed.get("steps") or [{}]
    reason = steps[-1].keys() & _ENDS
    if not reason or "steps" not in recorded:
        return recorded, replayed
    last = {key: steps[-1][key] for key in steps[-1] if key in reason}
    before = len(steps) - 1
    recorded_last = recorded["steps"][before]
    return (
        {
            **recorded,
            "steps": [
                *recorded["steps"][:before],
                {key: value for key, value in recorded_last.items() if key in reason},
            ],
        },
        {**replayed, "steps": [*steps[:before], last]},
    )


_ENDS = frozenset({"error", "start_error", "start_error_stage"})
