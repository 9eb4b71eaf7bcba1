"""What the replay tests share: the recordings by file, and replaying some of them here."""

from __future__ import annotations

import tempfile
from pathlib import Path

from numalign.config.settings import Compatibility
from numalign.replay.allowed import AllowedDifferences
from numalign.replay.recordings import Recording, read_recordings
from numalign.replay.report import Result, result_lines
from numalign.replay.worker import Options, memory_directory, replay_batch

HERE = Path(__file__).parent
SCENARIO_FILES = tuple(sorted((HERE / "recordings" / "scenarios").glob("*.jsonl.gz")))
UNIT_FILES = tuple(sorted((HERE / "recordings" / "unit").glob("*.jsonl*")))
ADMISSION_FILES = tuple(sorted((HERE / "recordings" / "admission").glob("*.jsonl.gz")))
DIFFERENCES = HERE / "safe_differences.yaml"
PLUGIN_DIFFERENCES = HERE / "safe_plugin_differences.yaml"
SAMPLE = HERE / "replay_sample.txt"


def topic_of(path: Path) -> str:
    """The name of a recording file without its endings."""
    return path.name.split(".")[0]


def replay_here(
    path: Path, compatibility: Compatibility, allowed: AllowedDifferences | None = None
) -> list[Result]:
    """Every recording of a file, replayed in this process."""
    with tempfile.TemporaryDirectory(dir=memory_directory()) as directory:
        options = Options(compatibility=compatibility, processes=False, directory=Path(directory))
        results = replay_batch(list(read_recordings(path)), options)
    return results if allowed is None else [allowed.judge(result) for result in results]


def failure_lines(results: list[Result]) -> list[str]:
    """The lines of the recordings that failed."""
    return [line for result in results if result.failures for line in result_lines(result)]


def scenarios_named(names: set[str]) -> list[Recording]:
    """The recorded scenarios with these names, in the order of the files."""
    return [r for path in SCENARIO_FILES for r in read_recordings(path) if r.name in names]
