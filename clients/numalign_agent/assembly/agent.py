"""One agent: opened over a configuration, running until it is cancelled, and put away in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numalign.errors import NumalignError
from numalign.store.process_lock import ProcessLock
from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign_agent.admitting.calls import AdmissionCalls
from numalign_agent.assembly.parts import Outside, Parts
from numalign_agent.assembly.sources import sources_of
from numalign_agent.config.settings import AgentSettings, Enforce, RunnerKind
from numalign_agent.journal.journal import Journal
from numalign_agent.journal.rows import Problem
from numalign_agent.loop.sources_ready import SourcesReady
from numalign_agent.loop.sync_loop import LoopChannels
from numalign_agent.merging.merger import SourceMerger
from numalign_agent.metrics import AGENT
from numalign_agent.pods.manager import PodManager
from numalign_agent.runners.port import PodRunner
from numalign_agent.sources.port import PodSource
from numalign_agent.status.cache import StatusCache
from numalign_agent.web import WebPage

if TYPE_CHECKING:
    from numalign_agent.assembly.api_side import ApiSide

PROBLEMS_SECONDS = 2.0

_log = get_logger("agent")


class Agent:
    """A node agent. Use `open_agent`."""

    def __init__(
        self,
        outside: Outside,
        sources: Sequence[PodSource],
        merger: SourceMerger,
        api: ApiSide | None,
    ) -> None:
        self.parts = Parts(outside)
        self._outside = outside
        self._sources = sources
        self._merger = merger
        self._api = api
        if api is not None:
            outside.cache.tell(api.sink(self.parts))

    def checks(self) -> Mapping[str, Any]:
        """The health checks by name."""
        return {"syncloop": self.parts.loop.problem, "pleg": self.parts.pleg.problem}

    async def run(self) -> None:
        """Run until cancelled; containers go on afterwards."""
        statuses = {
            uid: row.status for uid, row in self._outside.journal.rows().items() if row.status
        }
        self._outside.cache.restore(statuses)
        await self.parts.placements.restore()
        parts = self.parts
        async with asyncio.TaskGroup() as group:
            for work in (
                self._outside.journal.run(),
                parts.pleg.run(),
                parts.loop.run(),
                parts.admitter.run(),
                parts.reconciler.run(),
                parts.follower.run(),
                parts.placements.run(),
                parts.resizes.run(),
                parts.dead.run(),
                self._tell_problems(),
                *self._deliveries(),
                *(() if self._api is None else self._api.tasks(parts.loop.not_ready)),
            ):
                group.create_task(work)

    async def close(self) -> None:
        """Let go of everything."""
        await self.parts.workers.close()
        await self.parts.probes.close()

    def _deliveries(self) -> list[Coroutine[Any, Any, None]]:
        return [source.run(partial(self._merger.deliver, source.name)) for source in self._sources]

    async def _tell_problems(self) -> None:
        """Keep what sources cannot use where people look for it."""
        while True:
            found = [
                Problem(source.name, place, why)
                for source in self._sources
                for place, why in sorted(source.problems().items())
            ]
            await self._outside.journal.problems(found)
            await asyncio.sleep(PROBLEMS_SECONDS)


@asynccontextmanager
async def open_agent(
    settings: AgentSettings, *, runner: PodRunner | None = None
) -> AsyncIterator[Agent]:
    """An agent over its state directory, which no other agent has at the same time.

    `runner` replaces the configured one. Raises NumalignError where something that it needs
    cannot be used.
    """
    async with AsyncExitStack() as stack:
        directory = settings.state_directory
        lock = _locked(directory)
        stack.callback(lock.release)
        metrics = Metrics(AGENT, enabled=settings.http is not None)
        journal = Journal.open(directory, settings.journal_entries, metrics)
        stack.push_async_callback(journal.close)
        if runner is None:
            runner = await open_runner(settings)
        stack.push_async_callback(runner.close)
        api = await _api(settings)
        if api is not None:
            stack.push_async_callback(api.close)
        calls = AdmissionCalls(
            settings.admission_socket, settings.owner, None if api is None else api.node
        )
        stack.push_async_callback(calls.close)
        if api is not None:
            api.use(calls)
        cache = StatusCache([journal])
        channels = LoopChannels()
        merger = SourceMerger(channels.config, cache.event)
        sources = sources_of(settings, api)
        outside = Outside(
            settings=settings,
            runner=runner,
            calls=calls,
            journal=journal,
            pods=PodManager(),
            cache=cache,
            channels=channels,
            sources=SourcesReady((s.name for s in sources), lambda: merger.delivered),
            mirrors=None if api is None else api.mirrors,
            metrics=metrics,
        )
        agent = Agent(outside, sources, merger, api)
        stack.push_async_callback(agent.close)
        if settings.http is not None:
            page = WebPage.serve(
                settings.http.host, settings.http.port, metrics.text, agent.checks()
            )
            stack.push_async_callback(page.close)
            _log.info("page served", host=settings.http.host, port=page.port)
        yield agent


async def open_runner(settings: AgentSettings) -> PodRunner:
    """The configured runner. Raises RunnerFailed."""
    if settings.runner is RunnerKind.RECORDER:
        from numalign_agent.runners.recorder import RecorderRunner  # noqa: PLC0415 - only this one

        return RecorderRunner()
    from numalign_agent.runners.affinity import AffinityPlacer  # noqa: PLC0415 - only this one
    from numalign_agent.runners.process.runner import ProcessRunner  # noqa: PLC0415 - only this one

    directory = settings.state_directory
    placer = AffinityPlacer() if settings.enforce is Enforce.AFFINITY else None
    logs = settings.pod_logs_directory or directory / "logs"
    return await ProcessRunner.open(directory / "containers", logs, placer)


async def _api(settings: AgentSettings) -> ApiSide | None:
    if settings.api is None:
        return None
    from numalign_agent.assembly.api_side import open_api  # noqa: PLC0415 - only with a server

    return await open_api(settings.node_name, settings.api)


def _locked(directory: Path) -> ProcessLock:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise NumalignError(f"state directory {directory}: {error.strerror}") from error
    return ProcessLock.acquire(directory / "agent.lock")
