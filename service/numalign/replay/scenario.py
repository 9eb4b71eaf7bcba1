"""One scenario replayed and compared."""

from __future__ import annotations

from numalign.config.settings import Compatibility
from numalign.replay.compare import differences
from numalign.replay.driver import Driver
from numalign.replay.excuses import scenario_excuse, sort_out
from numalign.replay.expected import recorded_results
from numalign.replay.history import History
from numalign.replay.recordings import Recording
from numalign.replay.report import Result


async def replay_scenario(recording: Recording, driver: Driver) -> Result:
    """Replay under `compatibility: kubelet`, where everything recorded must come again.

    Raises RecordingError for a scenario that cannot be understood.
    """
    scenario = recording.record
    replayed = await History(scenario, driver, Compatibility.KUBELET).run()
    found = differences(recorded_results(scenario), replayed)
    failures, excused = sort_out(found, scenario_excuse(scenario))
    return Result(
        file=recording.file,
        line=recording.line,
        name=recording.name,
        failures=failures,
        excused=excused,
    )
