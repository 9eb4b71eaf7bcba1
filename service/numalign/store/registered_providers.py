"""Which hint providers of others have registered, for the next process of the Topology Manager.

Separate from the record of admitted pods: nothing that is decided stands in it. How a provider
registered is an opaque message here.
"""

from __future__ import annotations

import sqlite3

from numalign.store.database import Database


class RegisteredProviders:
    """The providers that registered since the machine was started.

    No process outlives `boot`, the machine's boot id: a provider of an earlier one has to register
    again, and its own pod may have to be admitted before it can.
    """

    def __init__(self, database: Database, boot: str) -> None:
        self._database = database
        self._boot = boot

    async def known(self) -> tuple[bytes, ...]:
        """How each registered, in order. Those of an earlier boot are forgotten."""

        def work(connection: sqlite3.Connection) -> tuple[bytes, ...]:
            connection.execute("DELETE FROM hint_providers WHERE boot != ?", (self._boot,))
            rows = connection.execute("SELECT registration FROM hint_providers ORDER BY sequence")
            return tuple(registration for (registration,) in rows)

        return await self._database.write(work, synced=False)

    async def keep(self, name: str, registration: bytes) -> None:
        """A provider has registered, as the last one; what it said before does not count."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM hint_providers WHERE name = ?", (name,))
            connection.execute(
                "INSERT INTO hint_providers(name, boot, registration) VALUES (?, ?, ?)",
                (name, self._boot, registration),
            )

        await self._database.write(work, synced=False)

    async def forget(self, name: str) -> None:
        """A provider is not to be asked any more; nothing, if it is unknown."""
        await self._database.write(
            lambda connection: connection.execute(
                "DELETE FROM hint_providers WHERE name = ?", (name,)
            ),
            synced=False,
        )
