"""Running it as a process: from the configuration to its end by a signal."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path

from numalign.config.loader import load_settings as load_service_settings
from numalign.config.settings import Service
from numalign.errors import ConfigError
from numalign.telemetry.logs import configure_logs, get_logger
from numalign.telemetry.metrics import Metrics
from numalign_agent.api.server import ApiServer, connect
from numalign_agent.config.loading import Overrides, document_with, load_settings
from numalign_agent.config.settings import AgentSettings, ApiSettings
from numalign_agent.node.keeper import NodeKeeper
from numalign_agent.node.metrics import ALONE, NODE
from numalign_agent.node.readiness import Readiness
from numalign_agent.node.settings import NodeSettings, TopologySettings, node_settings
from numalign_agent.node.startup_taint import StartUpTaint
from numalign_agent.node.topology.exporter import TopologyExporter
from numalign_agent.node.topology.node_facts import FactsReader
from numalign_agent.node.topology.published import PublishedTopology
from numalign_agent.pulse import Pulse
from numalign_agent.web import Check, WebPage

_STOP = (signal.SIGTERM, signal.SIGINT)

_log = get_logger("node")


def serve(config: Path | None, overrides: Overrides) -> None:
    """Keep the cluster's picture of this node until SIGTERM or SIGINT.

    `overrides` replace values of the file at `config`, by the path of their keys. Raises
    ConfigError naming every mistake, and ApiError for credentials that cannot be used.
    """
    agent = load_settings(config, overrides)
    if agent.api is None:
        raise ConfigError(
            "numalign.agent.api: must be given: {} for the service account of the pod, or a "
            "kubeconfig (--kubeconfig)"
        )
    settings = node_settings(document_with(config, overrides))
    services = load_service_settings(config, os.environ, os.geteuid() == 0)
    sockets = {service: services.endpoints[service] for service in services.services}
    configure_logs(agent.log_format, agent.log_level)
    asyncio.run(_run(agent, agent.api, settings, sockets))


async def _run(
    agent: AgentSettings,
    api: ApiSettings,
    settings: NodeSettings,
    sockets: Mapping[Service, Path],
) -> None:
    _log.info("starting", service="node", version=version("numalign"), node=agent.node_name)
    async with AsyncExitStack() as stack:
        specs = ALONE if settings.topology is None else NODE
        metrics = await stack.enter_async_context(
            Metrics(specs, enabled=settings.address is not None)
        )
        server = await connect(api.kubeconfig, api.context)
        stack.push_async_callback(server.close)
        readiness = Readiness(sockets, settings.runtime_page)
        stack.push_async_callback(readiness.close)
        taint = (
            StartUpTaint(server, agent.node_name, settings.restore_after, metrics)
            if settings.remove_taint
            else None
        )
        keeper = NodeKeeper(readiness, taint, settings.check_every, metrics)
        pulse = Pulse()
        work = [keeper.run(), pulse.run()]
        ready: dict[str, Check] = {"services": keeper.not_ready}
        if taint is not None:
            ready["taint"] = taint.problem
        if settings.topology is not None:
            exporter = _exporter(agent, server, sockets, settings.topology, metrics, stack)
            work.append(exporter.run())
            ready["topology"] = exporter.problem
        if settings.address is not None:
            page = WebPage.serve(
                settings.address.host,
                settings.address.port,
                metrics.text,
                {"loop": pulse.still},
                ready,
            )
            stack.push_async_callback(page.close)
            _log.info("metrics served", host=settings.address.host, port=page.port)
        await _until_signal(work)
    _log.info("stopped", service="node")


def _exporter(
    agent: AgentSettings,
    server: ApiServer,
    sockets: Mapping[Service, Path],
    settings: TopologySettings,
    metrics: Metrics,
    stack: AsyncExitStack,
) -> TopologyExporter:
    facts = FactsReader(sockets[Service.ADMISSION], sockets[Service.TOPOLOGY])
    stack.push_async_callback(facts.close)
    published = PublishedTopology(server, agent.node_name, metrics)
    exporter = TopologyExporter(facts, published, agent.node_name, settings, metrics)
    stack.push_async_callback(exporter.end)
    return exporter


async def _until_signal(work: list[Coroutine[None, None, None]]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _STOP:
        loop.add_signal_handler(number, stop.set)
    running = {asyncio.ensure_future(each) for each in work}
    stopping = asyncio.create_task(stop.wait())
    try:
        done, _ = await asyncio.wait({*running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in (*running, stopping):
            task.cancel()
        await asyncio.gather(*running, stopping, return_exceptions=True)
