"""One scenario replayed and compared, as the compatibility asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from numalign.config.settings import Compatibility
from numalign.replay.compare import Difference, differences
from numalign.replay.driver import Driver
from numalign.replay.excuses import scenario_excuse, sort_out
from numalign.replay.expected import recorded_results, until_end
from numalign.replay.history import History
from numalign.replay.recordings import Json, Recording
from numalign.replay.report import Result
from numalign.replay.safe import safe_differences

_Compare = Callable[[Json, Json, Json], Iterator[Difference]]


async def replay_scenario(
    recording: Recording,
    driver: Driver,
    compatibility: Compatibility,
    read: Callable[[Json], Json] = lambda results: results,
) -> Result:
    """Replay one scenario and compare it as `compatibility` asks.

    Under `kubelet` everything recorded must come again, under `safe` what `safe_differences`
    asks. `read` puts results into the words of recordings. Raises RecordingError for a
    scenario that cannot be understood.
    """
    scenario = recording.record
    replayed = read(await History(scenario, driver, compatibility).run())
    compare = _COMPARISONS[compatibility]
    found = compare(scenario, recorded_results(scenario), replayed)
    failures, excused = sort_out(found, scenario_excuse(scenario))
    return Result(
        file=recording.file,
        line=recording.line,
        name=recording.name,
        failures=failures,
        excused=excused,
    )


def _strictly(scenario: Json, recorded: Json, replayed: Json) -> Iterator[Difference]:  # noqa: ARG001 - a _Compare
    return differences(*until_end(recorded, replayed))


_COMPARISONS: dict[Compatibility, _Compare] = {
    Compatibility.KUBELET: _strictly,
    Compatibility.SAFE: safe_differences,
}
