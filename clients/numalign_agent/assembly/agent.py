"""One agent: opened over a configuration, running until it is cancelled, and put away in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from numalign.admission.shutdown.extra import load_logind
from numalign.admission.shutdown.watch import ShutdownWatch, Told
from numalign.errors import NumalignError
from numalign.store.process_lock import ProcessLock
from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign_agent.admitting.calls import CALL_SECONDS, AdmissionCalls
from numalign_agent.api.followed_node import FollowedNode
from numalign_agent.api.side import ApiSide, NodeCalls, connect_api
from numalign_agent.assembly.parts import Outside, Parts
from numalign_agent.claims.port import NoClaims
from numalign_agent.claims.reading import read_claims
from numalign_agent.config.enforce import Enforce
from numalign_agent.config.settings import AgentSettings, RunnerKind, ShutdownSettings
from numalign_agent.journal.journal import Journal
from numalign_agent.journal.rows import Problem
from numalign_agent.loop.runtime_health import NEVER_CHECKED
from numalign_agent.loop.sources_ready import SourcesReady
from numalign_agent.loop.sync_loop import LoopChannels
from numalign_agent.merging.merger import SourceMerger
from numalign_agent.metrics import AGENT
from numalign_agent.pods.manager import PodManager
from numalign_agent.runners.placer import CannotPlace
from numalign_agent.runners.port import PodRunner, RunnerFailed
from numalign_agent.shutdown.ending import PodEnding
from numalign_agent.shutdown.plan import coming_back
from numalign_agent.sources.assembly import make_sources
from numalign_agent.sources.port import PodSource
from numalign_agent.status.cache import StatusCache
from numalign_agent.web import WebPage

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
        self._sinks = [] if api is None else [api.status_sink(self.parts)]
        for sink in self._sinks:
            outside.cache.tell(sink)

    def checks(self) -> Mapping[str, Any]:
        """The health checks by name."""
        return {"syncloop": self.parts.loop.problem, "pleg": self.parts.pleg.problem}

    async def run(self) -> None:
        """Run until cancelled; containers go on afterwards."""
        for uid in coming_back(self._outside.journal.rows()):
            self._outside.journal.judge_anew(uid)
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
                parts.placements.watch(self._outside.settings.check_every),
                parts.resizes.run(),
                parts.dead.run(),
                self._tell_problems(),
                *self._deliveries(),
                *(() if self._api is None else (self._api.run(),)),
                *(sink.run() for sink in self._sinks),
            ):
                group.create_task(work)

    async def close(self) -> None:
        """Let go of everything."""
        await self.parts.ending.close()
        await self.parts.workers.close()
        await self.parts.probes.close()

    def _deliveries(self) -> list[Coroutine[Any, Any, None]]:
        return [source.run(partial(self._merger.deliver, source.name)) for source in self._sources]

    async def _tell_problems(self) -> None:
        """Keep what sources cannot use where people look for it."""
        while True:
            told = [(source.name, source.problems()) for source in self._sources]
            if self._api is not None:
                told.append(("node", self._api.problems()))
            found = [
                Problem(name, place, why)
                for name, problems in told
                for place, why in sorted(problems.items())
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
        calls = AdmissionCalls(settings.admission_socket, settings.owner)
        stack.push_async_callback(calls.close)
        health = _NodeHealth()
        api = await _connected(settings, calls, health)
        if api is not None:
            stack.push_async_callback(api.close)
        cache = StatusCache([journal])
        channels = LoopChannels()
        merger = SourceMerger(channels.config, cache.event)
        sources = make_sources(settings, api)
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
            claims=NoClaims() if api is None else api.claim_reader(),
        )
        agent = Agent(outside, sources, merger, api)
        health.agent = agent
        stack.push_async_callback(agent.close)
        if settings.shutdown is not None:
            watch = _shutdown_watch(settings.shutdown, agent.parts.ending)
            watch.start()
            stack.push_async_callback(watch.close)
        if settings.http is not None:
            page = WebPage.serve(
                settings.http.host, settings.http.port, metrics.text, agent.checks()
            )
            stack.push_async_callback(page.close)
            _log.info("page served", host=settings.http.host, port=page.port)
        yield agent


async def open_runner(settings: AgentSettings) -> PodRunner:
    """The configured runner. Raises NumalignError where it cannot be used."""
    if settings.runner is RunnerKind.RECORDER:
        from numalign_agent.runners.recorder import RecorderRunner  # noqa: PLC0415 - only this one

        return RecorderRunner()
    from numalign_agent.cgroups.choice import choose  # noqa: PLC0415 - only this one
    from numalign_agent.runners.process.runner import ProcessRunner  # noqa: PLC0415 - only this one

    directory = settings.state_directory
    logs = settings.pod_logs_directory or directory / "logs"
    try:
        placer = None
        if settings.enforce is not Enforce.NONE:
            chosen = await asyncio.to_thread(choose, settings.enforce, settings.cgroups)
            _log.info("placing", enforce=chosen.enforce.value, because=chosen.lacking)
            placer = chosen.placer
        return await ProcessRunner.open(directory / "containers", logs, placer)
    except (CannotPlace, RunnerFailed) as error:
        raise NumalignError(f"process runner: {error}") from error


def _shutdown_watch(settings: ShutdownSettings, ending: PodEnding) -> ShutdownWatch:
    open_logind = load_logind()
    told = Told(shutting_down=ending.announced, pods_left=ending.pods_left)
    grace = sum(group.grace for group in settings.groups)
    return ShutdownWatch(lambda: open_logind(settings.bus), told, grace)


class _NodeHealth:
    """What the node says of itself, before and after there is an agent to say it."""

    def __init__(self) -> None:
        self.agent: Agent | None = None

    def not_ready(self) -> str | None:
        """Why no pod can run."""
        return NEVER_CHECKED if self.agent is None else self.agent.parts.loop.not_ready()


async def _connected(
    settings: AgentSettings, calls: AdmissionCalls, health: _NodeHealth
) -> ApiSide | None:
    """The side of the API server, if there is one; Admission judges by its Node object then."""
    if settings.api is None:
        return None
    api = await connect_api(
        settings.api,
        settings.node_name,
        version("numalign"),
        NodeCalls(
            tell=partial(calls.client.set_node, timeout=CALL_SECONDS),
            resources=partial(calls.client.get_node_resources, timeout=CALL_SECONDS),
            not_ready=health.not_ready,
        ),
    )
    calls.judge_by(FollowedNode(api.server, settings.node_name, api.node))
    if settings.claim_hints:
        calls.place_by(partial(read_claims, api.claim_reader()))
    return api


def _locked(directory: Path) -> ProcessLock:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise NumalignError(f"state directory {directory}: {error.strerror}") from error
    return ProcessLock.acquire(directory / "agent.lock")
