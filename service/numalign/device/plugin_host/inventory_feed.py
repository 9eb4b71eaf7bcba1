"""Brings what plugins report into the engine and the books, in order, between decisions.

Separate from the host, which must not wait: a plugin's message is put here and applied when
the ledger is free, so that no decision sees the inventory change under it. A list does not
wait alone; all that came in meanwhile is applied and stored in one go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from numalign.device.engine import DeviceEngine
from numalign.device.inventory import Inventory
from numalign.device.plugin_host.changes import InventoryChange
from numalign.device.state import DeviceState, pods_holding
from numalign.errors import NumalignError
from numalign.model.ids import DeviceId, PodUid
from numalign.provider.ledger import Ledger
from numalign.telemetry.logs import get_logger

OnHealth = Callable[[frozenset[PodUid]], None]
"""Hears of pods that hold a device whose health changed (DEV-15)."""

_log = get_logger("device-plugins")


class InventoryFeed:
    """The way from plugins to the books. `run` applies what `put` takes, until cancelled."""

    def __init__(
        self, engine: DeviceEngine, ledger: Ledger[DeviceState], on_health: OnHealth
    ) -> None:
        self._engine = engine
        self._ledger = ledger
        self._on_health = on_health
        self._waiting: list[InventoryChange] = []
        self._arrived = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def inventory(self) -> Inventory:
        """The inventory as applied so far."""
        return self._engine.inventory

    def put(self, change: InventoryChange) -> None:
        """Have `change` applied after all that were put before."""
        self._waiting.append(change)
        self._idle.clear()
        self._arrived.set()

    async def settled(self) -> None:
        """Wait until everything that was put is applied."""
        await self._idle.wait()

    async def run(self) -> None:
        """Apply changes for ever."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            try:
                await self._ledger.facts_changed(self._applied)
            except NumalignError as error:
                # The books have the change; the next one that can be stored takes it along.
                _log.error("what device plugins reported could not be stored", error=str(error))
            if not self._waiting:
                self._idle.set()

    def _applied(self, state: DeviceState) -> DeviceState:
        changes, self._waiting = self._waiting, []
        inventory = self._engine.inventory
        flipped: set[DeviceId] = set()
        for change in changes:
            flipped |= change.flipped(inventory)
            inventory = change.apply(inventory)
        self._engine.update_inventory(inventory)
        holders = pods_holding(state, frozenset(flipped)) if flipped else frozenset()
        if holders:
            self._on_health(holders)
        if any(change.stored for change in changes):
            return self._engine.noted(state)
        return state
