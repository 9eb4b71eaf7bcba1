"""The agent as a process: logs, traces, signals, and its exit code."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from importlib.metadata import version
from pathlib import Path

from numalign.rpc.channel import spans_ended
from numalign.telemetry.logs import configure_logs, get_logger
from numalign.telemetry.tracing import start_tracing, stop_tracing
from numalign_agent.assembly.agent import open_agent
from numalign_agent.config.loading import Overrides, load_settings
from numalign_agent.config.settings import AgentSettings

_log = get_logger("agent")


def run_agent(config: Path | None, overrides: Overrides) -> int:
    """Run an agent until SIGTERM or SIGINT; the exit code.

    Raises NumalignError where it cannot start.
    """
    settings = load_settings(config, overrides)
    configure_logs(settings.log_format, settings.log_level)
    start_tracing("numalign-agent", os.environ)
    try:
        return asyncio.run(_run(settings))
    finally:
        stop_tracing()


async def _run(settings: AgentSettings) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    _log.info("starting", version=version("numalign"), node=settings.node_name)
    async with open_agent(settings) as agent:
        running = loop.create_task(agent.run())
        stopping = loop.create_task(stop.wait())
        await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if running.done():
            # It ends by itself only where something broke.
            running.result()
        _log.info("stopping")
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
    await spans_ended()
    _log.info("stopped")
    return 0
