"""Replaying a batch of recordings in one process and on one event loop.

Separate from the command, because a spawned worker imports this and nothing above it.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from numalign.config.settings import Compatibility
from numalign.replay.driver import Driver
from numalign.replay.in_process import InProcess
from numalign.replay.processes import Processes
from numalign.replay.real_plugins import PluginProcess, RealPlugins, without_rpc_words
from numalign.replay.recordings import Kind, Recording
from numalign.replay.report import Result
from numalign.replay.scenario import replay_scenario
from numalign.replay.static_devices import StaticDevices
from numalign.replay.unit.runner import replay_unit

_MEMORY = Path("/dev/shm")  # noqa: S108 - what is made there has a random name and is private


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How scenarios are replayed. `directory` is where their state goes for the time.

    `plugins`: the devices come from real plugins.
    """

    compatibility: Compatibility
    processes: bool
    directory: Path
    plugins: bool = False


def memory_directory() -> Path | None:
    """Where files are in memory, if anywhere: the state of a replay need not outlive it."""
    return _MEMORY if _MEMORY.is_dir() else None


def replay_batch(recordings: Sequence[Recording], options: Options) -> list[Result]:
    """The results, in order. Raises RecordingError for one that cannot be understood."""
    return asyncio.run(_replay(recordings, options))


async def _replay(recordings: Sequence[Recording], options: Options) -> list[Result]:
    with PluginProcess() if options.plugins else nullcontext() as plugins:
        return [await _replay_one(recording, options, plugins) for recording in recordings]


async def _replay_one(
    recording: Recording, options: Options, plugins: PluginProcess | None
) -> Result:
    if recording.kind is not Kind.SCENARIO:
        return await replay_unit(recording)
    with tempfile.TemporaryDirectory(dir=options.directory, prefix="r-") as directory:
        driver: Driver = (
            Processes(Path(directory)) if options.processes else InProcess(Path(directory))
        )
        if plugins is None:
            static = StaticDevices(driver, options.compatibility)
            return await replay_scenario(recording, static, options.compatibility)
        real = RealPlugins(driver, plugins, Path(directory) / "dp", options.compatibility)
        return await replay_scenario(recording, real, options.compatibility, without_rpc_words)
