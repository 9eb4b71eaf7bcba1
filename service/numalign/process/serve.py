"""Running services until a signal: all in this process, or one."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

from numalign.config.loader import load_settings
from numalign.config.settings import Address, Service, Settings
from numalign.errors import NumalignError
from numalign.process import event_loop
from numalign.process.companions import Companions
from numalign.process.control import ControlServicer
from numalign.process.garbage import spare_collections
from numalign.process.metrics import address_of, open_metrics
from numalign.process.part import Part
from numalign.process.readiness import serve_when_ready
from numalign.process.refusal_text import refusal_lines
from numalign.process.reload import Reloader
from numalign.process.second_owner.watch import SecondOwnerWatch
from numalign.process.servers import other_servers, service_servers
from numalign.rpc.channel import spans_ended
from numalign.rpc.grpc_server import GrpcServer
from numalign.rpc.process import ServiceProcess
from numalign.telemetry.logs import configure_logs, get_logger
from numalign.telemetry.metrics import Metrics
from numalign.telemetry.tracing import active_tracer, start_tracing, stop_tracing

GRACE_SECONDS = 5.0
"""How long calls in hand may take to end when the process is asked to stop."""

_log = get_logger("serve")


def serve(
    service: Service | None, config: Path | None, overrides: dict[str, object] | None = None
) -> int:
    """Serve one service, or (None) all in this process, until a signal; the exit code.

    `config` is the configuration file, `overrides` replaces keys of its numalign section.
    What prevents a start goes to standard error, a line for each problem, and the exit code is 1.
    """

    def read() -> Settings:
        return load_settings(config, os.environ, os.geteuid() == 0, overrides)

    try:
        settings = read()
        configure_logs(settings.log.format.value, settings.log.level.value)
        start_tracing(f"numalign-{'all' if service is None else service.value}", os.environ)
        event_loop.run(_run(service, settings, read))
    except NumalignError as error:
        for line in refusal_lines(error):
            print(line, file=sys.stderr)  # noqa: T201 - the command's answer
        return 1
    finally:
        stop_tracing()
    return 0


async def _run(service: Service | None, settings: Settings, read: Callable[[], Settings]) -> None:
    _log.info(
        "starting",
        service="all" if service is None else service.value,
        version=version("numalign"),
        compatibility=settings.compatibility.value,
    )
    for warning in settings.warnings:
        _log.warning(warning)
    try:
        if service is None:
            await _run_all(settings, read)
        else:
            await _run_one(service, settings, read)
    finally:
        await spans_ended()


async def _run_all(settings: Settings, read: Callable[[], Settings]) -> None:
    from numalign.process.node import Node  # noqa: PLC0415 - memory of single services

    owners = SecondOwnerWatch(settings, settings.services)
    await owners.refuse_start()
    node = await Node.open(settings, read)
    try:
        async with _metrics_page(node.metrics, address_of(None, settings)):
            await _serve_parts(node.parts, node.reloader, owners, node.metrics, settings)
    finally:
        await node.close()


async def _run_one(service: Service, settings: Settings, read: Callable[[], Settings]) -> None:
    from numalign.process.single import open_part  # noqa: PLC0415 - memory of all in one

    metrics = open_metrics(service, settings)
    owners = SecondOwnerWatch(settings, (service,))
    await owners.refuse_start()
    part = await open_part(service, settings, metrics)
    try:
        reloader = Reloader(settings, read, (part,))
        async with _metrics_page(metrics, address_of(service, settings)):
            await _serve_parts((part,), reloader, owners, metrics, settings)
    finally:
        await part.close()


@asynccontextmanager
async def _metrics_page(metrics: Metrics, address: Address | None) -> AsyncIterator[None]:
    async with metrics:
        if address is not None:
            port = metrics.serve(address.host, address.port)
            _log.info("metrics served", host=address.host, port=port)
        yield


async def _serve_parts(
    parts: Sequence[Part],
    reloader: Reloader,
    owners: SecondOwnerWatch,
    metrics: Metrics,
    settings: Settings,
) -> None:
    for part in parts:
        for report in part.reports():
            _log.warning(report, provider=part.service.value)
    parts = owners.reporting(parts)
    control = ControlServicer(reloader.reload, parts, reloader.latest)
    tracer = active_tracer()
    by_service = service_servers(parts, control, settings, tracer)
    servers = [*by_service.values(), *other_servers(parts, settings, tracer)]
    for part in parts:
        by_service[part.service].health.hold(part.health_name)
    owners.tell(metrics, {part.service: _health(by_service, part) for part in parts})

    def on_serving() -> None:
        spare_collections()
        for part in parts:
            companions.start(serve_when_ready(part, _health(by_service, part)))

    async def reload() -> None:
        await reloader.reload()

    reloader.listeners += [_log_as_told(settings), owners.reload]
    process = ServiceProcess(servers, grace=GRACE_SECONDS, reload=reload, on_serving=on_serving)
    companions = Companions(process.stop)
    companions.start(owners.run())
    try:
        await process.run()
    finally:
        await companions.end()


def _log_as_told(settings: Settings) -> Callable[[Settings], tuple[str, ...]]:
    log = settings.log

    def listen(new: Settings) -> tuple[str, ...]:
        nonlocal log
        if new.log == log:
            return ()
        log = new.log
        configure_logs(log.format.value, log.level.value)
        return ("numalign.log",)

    return listen


def _health(servers: Mapping[Service, GrpcServer], part: Part) -> Callable[[bool], None]:
    return lambda serving: servers[part.service].health.set_serving(serving, part.health_name)
