"""The command: files to results, results to lines, lines to an exit code."""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import batched
from pathlib import Path
from typing import TextIO

from numalign.config.settings import Compatibility
from numalign.replay.recordings import Kind, Recording, RecordingError, read_recordings
from numalign.replay.report import Result, result_lines, summary
from numalign.replay.worker import Options, replay_batch

DEFAULT_JOBS = 2
"""Workers at a time: a replay keeps that many CPUs busy."""

_SCENARIOS = 8
"""Scenarios of one batch; few enough that workers end at about the same time."""

_UNITS = 500
"""Unit records of one batch: each takes next to nothing."""

_FAST_DIRECTORY = Path("/dev/shm")  # noqa: S108 - directories below it have random names
"""Memory, where there is some: the state of a replay need not outlive it."""
