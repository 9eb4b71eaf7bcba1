"""Recordings cut into batches, and batches given to workers. Results keep their order."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from numalign.replay.recordings import Kind, Recording
from numalign.replay.report import Result
from numalign.replay.worker import Options, replay_batch
from numalign.telemetry.logs import configure_logs

_SCENARIOS = 8
"""Scenarios of one batch; few enough that workers end at about the same time."""

_UNITS = 500
"""Unit records of one batch: each takes next to nothing."""


def replay_all(recordings: Iterable[Recording], options: Options, jobs: int) -> Iterator[Result]:
    """The result of every recording, in order, from `jobs` processes (1: from this one).

    Raises RecordingError for a recording that cannot be understood.
    """
    work = partial(replay_batch, options=options)
    if jobs == 1:
        for batch in batches(recordings):
            yield from work(batch)
        return
    # Spawned: a fork would take over threads of gRPC in the middle of what they do.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        max_workers=jobs, mp_context=context, initializer=log_errors_only
    ) as workers:
        try:
            for results in workers.map(work, batches(recordings)):
                yield from results
        except BaseException:
            workers.shutdown(cancel_futures=True)
            raise


def log_errors_only() -> None:
    """What services log of what they do says nothing here: the differences say it all."""
    configure_logs("console", "error")


def batches(recordings: Iterable[Recording]) -> Iterator[list[Recording]]:
    """Recordings in batches of one kind of work each, in order."""
    batch: list[Recording] = []
    for recording in recordings:
        if batch and (_is_scenario(batch[0]) != _is_scenario(recording) or _is_full(batch)):
            yield batch
            batch = []
        batch.append(recording)
    if batch:
        yield batch


def _is_full(batch: list[Recording]) -> bool:
    return len(batch) >= (_SCENARIOS if _is_scenario(batch[0]) else _UNITS)


def _is_scenario(recording: Recording) -> bool:
    return recording.kind is Kind.SCENARIO
