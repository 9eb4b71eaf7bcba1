"""The DRA service, put together from its settings and its state."""

from __future__ import annotations

import asyncio

from numalign.config.settings import Service, Settings
from numalign.dra.claim_book import open_book
from numalign.dra.claim_manager import ClaimManager
from numalign.dra.drivers import Drivers
from numalign.dra.health_follower import HealthFollower
from numalign.dra.observer import ClaimObserver
from numalign.dra.servicer import DynamicResourcesServicer
from numalign.dra.watched_drivers import DraPluginHandler
from numalign.plugins.types import DRA_PLUGIN_TYPE
from numalign.plugins.watcher import PluginWatcher
from numalign.process.boot import boot_id
from numalign.process.part import Part
from numalign.process.traced_stores import provider_store
from numalign.process.watched_directory import make_watched
from numalign.rpc.methods import Registration
from numalign.store.database import Database
from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign.v1.dynamic_resources_pb2_grpc import add_DynamicResourcesServicer_to_server

HEALTH_NAME = "numalign.v1.DynamicResources"

_NAME = "dra"

_log = get_logger("dra")


async def dra_part(settings: Settings, metrics: Metrics, database: Database) -> Part:
    """The service over its state; drivers are looked for from `serving` on.

    Raises StartError naming the file or directory that cannot be used.
    """
    observer = ClaimObserver(metrics)
    book = await open_book(provider_store(database, _NAME, durable=True), boot_id(_NAME))
    health = HealthFollower(book)
    drivers = Drivers(settings.dra.call_timeout, observer.called, health.follow)
    servicer = DynamicResourcesServicer(
        ClaimManager(book, drivers, observer),
        book,
        drivers,
        health,
        settings.dra.retry_after,
        extended_resources=settings.gates.dra_extended_resource,
    )
    registry = settings.dra.plugins_registry
    make_watched(registry, _NAME)
    watching: list[asyncio.Task[None]] = []

    async def serving() -> None:
        # Plugins of other types are for whoever else looks at the directory.
        watcher = PluginWatcher(
            registry,
            {DRA_PLUGIN_TYPE: DraPluginHandler(drivers)},
            elsewhere=lambda type_: type_ != DRA_PLUGIN_TYPE,
        )
        watching.append(asyncio.create_task(watcher.run()))
        watching[0].add_done_callback(_tell)

    async def close() -> None:
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        await drivers.close()

    return Part(
        service=Service.DRA,
        registration=Registration(add_DynamicResourcesServicer_to_server, servicer),
        health_name=HEALTH_NAME,
        serving=serving,
        close=close,
        reports=lambda: book.reports,
    )


def _tell(task: asyncio.Task[None]) -> None:
    """Say that a task which should never end has ended, and why."""
    if not task.cancelled():
        _log.error("drivers are not looked for any more", exc_info=task.exception())
