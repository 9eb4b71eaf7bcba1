"""The command: files to results, results to lines, lines to an exit code."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from numalign.config.settings import Compatibility
from numalign.document.problems import DocumentError
from numalign.document.text import read_document
from numalign.replay.allowed import AllowedDifferences, Row, document_of, rows_of
from numalign.replay.batches import replay_all
from numalign.replay.recordings import Recording, RecordingError, read_recordings
from numalign.replay.report import Result, result_lines, summary
from numalign.replay.worker import Options, memory_directory

DEFAULT_JOBS = 2
"""Workers at a time: a replay keeps that many CPUs busy."""

PASSED, FAILED, UNUSABLE = 0, 1, 2
"""Exit codes: all recordings agree, some do not, some file cannot be replayed."""


def replay_command(
    files: Sequence[Path],
    compatibility: Compatibility = Compatibility.KUBELET,
    processes: bool = False,
    jobs: int = DEFAULT_JOBS,
    differences_files: Sequence[Path] = (),
    *,
    output: TextIO,
    plugins: bool = False,
    state_directory: Path | None = None,
    write_differences: Path | None = None,
) -> int:
    """Replay every recording of `files`, print what differs and a summary; the exit code.

    `processes` runs each service in a process of its own; with `plugins`, devices come from
    real plugins in yet another one. `jobs` recordings are replayed at a
    time, in as many workers. `differences_files` hold the differences that are allowed;
    `write_differences` writes, as such a file, further ones with a known cause. State goes below
    `state_directory`, in memory by default.
    """
    try:
        base = state_directory or memory_directory()
        results = _results(
            files,
            Options(
                compatibility=compatibility,
                processes=processes,
                directory=base or Path(tempfile.gettempdir()),
                plugins=plugins,
            ),
            jobs,
        )
        allowed = _allowed(differences_files)
        judged: list[Result] = []
        for result in results:
            judged.append(result if allowed is None else allowed.judge(result))
            for line in result_lines(judged[-1]):
                print(line, file=output)
    except (RecordingError, DocumentError) as error:
        print(f"numalign: {error}", file=output)
        return UNUSABLE
    if write_differences is not None:
        _write(write_differences, judged)
    counts = summary(judged)
    print(counts, file=output)
    return FAILED if counts.failed else PASSED


def _results(files: Sequence[Path], options: Options, jobs: int) -> Iterator[Result]:
    with tempfile.TemporaryDirectory(dir=options.directory, prefix="numalign-replay-") as made:
        yield from replay_all(_recordings(files), replace(options, directory=Path(made)), jobs)


def _recordings(files: Sequence[Path]) -> Iterator[Recording]:
    """The records of all files; the notes that stand beside recordings are no recordings."""
    for path in files:
        if path.suffix != ".md":
            yield from read_recordings(path)


def _allowed(paths: Sequence[Path]) -> AllowedDifferences | None:
    rows: list[Row] = []
    for path in paths:
        try:
            rows += rows_of(read_document(path))
        except RecordingError as error:
            raise RecordingError(f"{path}: {error}") from None
    return AllowedDifferences(rows) if paths else None


def _write(path: Path, results: Sequence[Result]) -> None:
    """One row a line: JSON is YAML too, and a change of one row is a change of one line."""
    lines = [
        "# Where a safe node differs from the recordings of the kubelet, and by which rule.",
        "# Written by `numalign replay --compatibility safe --write-differences`.",
    ]
    for scenario, rows in document_of(results).items():
        lines.append(f"{scenario}:")
        lines += [f"- {json.dumps(row, ensure_ascii=False)}" for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
