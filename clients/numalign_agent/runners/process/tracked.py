"""One container as the runner follows it: what is on disk, and a hold on its process."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import replace

from numalign_agent.runners.port import ContainerPhase, RuntimeContainer
from numalign_agent.runners.process.directory import ContainerDirectory, Exited, Made
from numalign_agent.runners.process.proc import open_process

UNKNOWN_EXIT = 137
UNKNOWN_REASON = "ContainerStatusUnknown"
LOST = "Nobody was there to see how the container ended"
_PROBE_SECONDS = 0.01


class TrackedContainer:
    """Follows one container from its making to its end; `changed` hears of every step."""

    def __init__(
        self,
        directory: ContainerDirectory,
        made: Made,
        boot: str,
        changed: Callable[[str], None],
    ) -> None:
        self.directory = directory
        self.made = made
        self.ended = asyncio.Event()
        self.process: int | None = None
        self.state = RuntimeContainer(
            id=directory.id,
            name=made.container,
            phase=ContainerPhase.CREATED,
            attempt=made.attempt,
            spec_hash=made.spec_hash,
            earlier_boot=made.boot != boot,
        )
        self._changed = changed
        self._settling: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The pid of a process that has not been seen to end."""
        running = self.directory.running()
        return None if running is None or self.process is None else running.pid

    def look(self) -> None:
        """Read what is on disk and follow the process, if one was begun. Once is enough."""
        if self.state.phase is not ContainerPhase.CREATED:
            return
        exited = self.directory.exited()
        running = self.directory.running()
        if running is not None:
            self.state = replace(self.state, started_at=running.at)
        if exited is not None:
            self._end(exited)
        elif running is None:
            if self.state.earlier_boot:
                self._lost()
        elif self.state.earlier_boot:
            self._lost()
        else:
            self._follow(running.pid, running.start)

    async def close(self) -> None:
        """Let go of the process; it goes on."""
        self._let_go()
        if self._settling is not None:
            self._settling.cancel()
            await asyncio.gather(self._settling, return_exceptions=True)

    def _follow(self, pid: int, start: int) -> None:
        self.state = replace(self.state, phase=ContainerPhase.RUNNING)
        self.process = open_process(pid, start)
        loop = asyncio.get_running_loop()
        if self.process is None:
            self._settle()
        else:
            loop.add_reader(self.process, self._settle)

    def _settle(self) -> None:
        """The process has ended: its shim is about to say how, if it is still there."""
        self._let_go()
        self._settling = asyncio.get_running_loop().create_task(self._wait_for_word())

    async def _wait_for_word(self) -> None:
        while (exited := self.directory.exited()) is None:
            if not self.directory.has_shim() and self.directory.exited() is None:
                self._lost()
                return
            await asyncio.sleep(_PROBE_SECONDS)
        self._end(exited)

    def _lost(self) -> None:
        exited = Exited(None, 0, time.time(), LOST)
        self.directory.write_exited(exited)
        self._end(exited)

    def _end(self, exited: Exited) -> None:
        self.state = replace(
            self.state,
            phase=ContainerPhase.EXITED,
            exit_code=UNKNOWN_EXIT if exited.code is None else exited.code,
            reason=_reason(exited),
            message=exited.failure,
            finished_at=exited.at,
        )
        self.ended.set()
        self._changed(self.made.pod_uid)

    def _let_go(self) -> None:
        if self.process is not None:
            asyncio.get_running_loop().remove_reader(self.process)
            os.close(self.process)
            self.process = None


def _reason(exited: Exited) -> str:
    if exited.code is None:
        return UNKNOWN_REASON
    if exited.failure:
        return "StartError"
    return "Error" if exited.code else "Completed"
