"""What is on disk of one container: what it was made from, and what its shim wrote down.

Separate from the runner, because after a restart this is all that is known of a container.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from numalign_agent.runners.port import RunnerFailed
from numalign_agent.runners.process.shim import NOT_STARTED

_MADE, _SPEC, _LOCK, _RUNNING, _EXITED = (
    "made.json", "spec.json", "lock", "running.json", "exited.json",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a container was made as; `at` is in seconds since the epoch."""

    pod_uid: str
    pod_name: str
    namespace: str
    container: str
    attempt: int
    spec_hash: str
    boot: str
    at: float


@dataclass(frozen=True, slots=True)
class Running:
    """The process of a container and its shim. `start` and `shim_start` are in clock ticks."""

    pid: int
    start: int
    shim: int
    at: float


@dataclass(frozen=True, slots=True)
class Exited:
    """How a container ended; `failure` says why one never started."""

    code: int | None
    signal: int
    at: float
    failure: str


class ContainerDirectory:
    """One container's directory. Every method may raise RunnerFailed naming the path."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def id(self) -> str:
        """The container's id."""
        return self.path.name

    @classmethod
    def make(cls, path: Path, made: Made, spec: Mapping[str, Any]) -> Self:
        """A directory for a container that is not started yet; made whole or not at all."""
        unfinished = path.with_name(f".{path.name}")
        try:
            unfinished.mkdir(mode=0o700, parents=True)
            (unfinished / _LOCK).touch(mode=0o600)
            (unfinished / _SPEC).write_text(json.dumps(spec))
            (unfinished / _MADE).write_text(json.dumps(asdict(made)))
            unfinished.rename(path)
        except OSError as error:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise RunnerFailed(f"{path}: {error.strerror}") from error
        return cls(path)

    def made(self) -> Made:
        """What it was made as."""
        document = self._read(_MADE)
        if document is None:
            raise RunnerFailed(f"{self.path / _MADE}: missing")
        return Made(**document)

    def running(self) -> Running | None:
        """Its process, which may have ended since; None if none was ever begun."""
        document = self._read(_RUNNING)
        return None if document is None else Running(**document)

    def exited(self) -> Exited | None:
        """How it ended; None if nobody wrote it down."""
        document = self._read(_EXITED)
        return None if document is None else Exited(**document)

    def has_shim(self) -> bool:
        """Whether its shim is alive."""
        with self._lock() as free:
            return not free

    def give_up(self, why: str) -> bool:
        """Have a container that was made never start; False if it has started all the same."""
        with self._lock() as free:
            if not free or self.running() is not None or self.exited() is not None:
                return False
            self.write_exited(Exited(NOT_STARTED, 0, time.time(), why))
            return True

    def write_exited(self, exited: Exited) -> None:
        """Write down how it ended, in place of a shim that cannot."""
        path = self.path / _EXITED
        unfinished = path.with_name(f"{_EXITED}.agent")
        try:
            unfinished.write_text(json.dumps(asdict(exited)))
            unfinished.rename(path)
        except OSError as error:
            raise RunnerFailed(f"{path}: {error.strerror}") from error

    def remove(self) -> None:
        """Forget it."""
        hidden = self.path.with_name(f".{self.path.name}")
        try:
            self.path.rename(hidden)
            shutil.rmtree(hidden)
        except FileNotFoundError:
            return
        except OSError as error:
            raise RunnerFailed(f"{self.path}: {error.strerror}") from error

    @contextlib.contextmanager
    def _lock(self) -> Iterator[bool]:
        """Hold the shim's lock for a moment; whether it was free."""
        try:
            descriptor = os.open(self.path / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise RunnerFailed(f"{self.path / _LOCK}: {error.strerror}") from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(descriptor)

    def _read(self, name: str) -> dict[str, Any] | None:
        path = self.path / name
        try:
            document: dict[str, Any] = json.loads(path.read_text())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise RunnerFailed(f"{path}: {error}") from error
        return document


def directories_in(root: Path) -> list[ContainerDirectory]:
    """The directories of all containers; what a crash left half made is cleared away."""
    found = []
    for path in sorted(root.iterdir()):
        if path.name.startswith("."):
            shutil.rmtree(path, ignore_errors=True)
        elif path.is_dir():
            found.append(ContainerDirectory(path))
    return found
