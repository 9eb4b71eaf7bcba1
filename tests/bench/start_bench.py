"""How soon services serve."""

from __future__ import annotations

import time
from pathlib import Path

from tests.bench.figures import Figure, at_most
from tests.bench.processes import running, service_command, until_serving
from tests.integration.node_document import write_document

from numalign.config.settings import CORE_SERVICES, Service

ALONE_SECONDS, FIVE_SECONDS = 1.0, 3.0


def measure(directory: Path) -> list[Figure]:
    """From the start of processes to SERVING in health: alone, five at once, all in one."""
    config = write_document(directory)
    figures = [
        _figure(directory, config, {service.value: [service]}, f"{service} alone", ALONE_SECONDS)
        for service in CORE_SERVICES
    ]
    five = {service.value: [service] for service in CORE_SERVICES}
    figures.append(_figure(directory, config, five, "five at once", FIVE_SECONDS))
    # Services in one process do not read the state of services in processes of their own.
    apart = directory / "one"
    apart.mkdir()
    together: dict[str, list[Service]] = {"all": list(CORE_SERVICES)}
    figures.append(
        _figure(apart, write_document(apart), together, "all in one process", ALONE_SECONDS)
    )
    return figures


def _figure(
    directory: Path, config: Path, layout: dict[str, list[Service]], name: str, limit: float
) -> Figure:
    log = directory / "log"
    paths = [directory / "run" / f"{s}.sock" for services in layout.values() for s in services]
    commands = {process: service_command(process, config) for process in layout}
    started = time.perf_counter()
    with running(commands, log):
        until_serving(paths, log)
        took = time.perf_counter() - started
    return Figure(name=f"ready, {name}", unit="s", value=took, target=at_most(limit))
