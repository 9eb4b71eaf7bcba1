"""Numbers that a service keeps beside its state: which configuration it runs, and the like.

Separate from the stores of pods and books, because these are true of the process as a whole.
"""

from __future__ import annotations

import sqlite3

from numalign.store.database import Database

_GENERATION = "config_generation"
_FINGERPRINT = "config_fingerprint"
_WHOLE = "record_whole"


class NodeFacts:
    """The facts in one state file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def generation_of(self, fingerprint: int) -> int:
        """The number of the configuration with this fingerprint (63 bits).

        It is that of the last start or change if the configuration is the same, else the next;
        the first is 1.
        """

        def work(connection: sqlite3.Connection) -> int:
            generation = _get(connection, _GENERATION)
            if generation and _get(connection, _FINGERPRINT) == fingerprint:
                return generation
            _put(connection, _GENERATION, generation + 1)
            _put(connection, _FINGERPRINT, fingerprint)
            return generation + 1

        return await self._database.write(work, synced=False)

    async def record_is_whole(self) -> bool:
        """Whether the record of admitted pods in this file is known to name every pod.

        A new file does not, until the providers have said that they hold nothing else.
        """
        return await self._database.read(lambda connection: _get(connection, _WHOLE) == 1)

    async def note_whole_record(self) -> None:
        """The record names every pod that holds anything."""
        await self._database.write(lambda connection: _put(connection, _WHOLE, 1), synced=False)


def _get(connection: sqlite3.Connection, name: str) -> int:
    row = connection.execute("SELECT value FROM counters WHERE name = ?", (name,)).fetchone()
    return 0 if row is None else int(row[0])


def _put(connection: sqlite3.Connection, name: str, value: int) -> None:
    connection.execute(
        "INSERT INTO counters(name, value) VALUES (?, ?)"
        " ON CONFLICT DO UPDATE SET value = excluded.value",
        (name, value),
    )
