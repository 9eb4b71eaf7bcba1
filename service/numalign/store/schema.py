"""The tables of a state file and how an older file becomes a newer one.

Separate from `database` so that the shape of the data can be read in one place. Every state
file has every table: the services of one process share a file, and an unused table costs
nothing.
"""

from __future__ import annotations

APPLICATION_ID = 0x6E756D61
"""Marks a file as ours: `numa` in ASCII, kept in SQLite's own header."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # payload is NULL while a provider has stored nothing but is known.
        (
            "CREATE TABLE snapshot("
            " provider TEXT NOT NULL PRIMARY KEY,"
            " payload BLOB,"
            " revision INTEGER NOT NULL) STRICT"
        ),
        # before is NULL where the provider had nothing stored when it prepared.
        (
            "CREATE TABLE prepared("
            " sequence INTEGER PRIMARY KEY AUTOINCREMENT,"
            " provider TEXT NOT NULL,"
            " admission_id TEXT NOT NULL,"
            " pod_uid TEXT NOT NULL,"
            " before BLOB,"
            " UNIQUE(provider, admission_id)) STRICT"
        ),
        (
            "CREATE TABLE admissions("
            " pod_uid TEXT NOT NULL PRIMARY KEY,"
            " admission_id TEXT NOT NULL UNIQUE,"
            " owner TEXT NOT NULL,"
            " pod BLOB NOT NULL,"
            " record BLOB NOT NULL,"
            " config_generation INTEGER NOT NULL,"
            " revision INTEGER NOT NULL) STRICT"
        ),
        (
            "CREATE TABLE containers("
            " container_id TEXT NOT NULL PRIMARY KEY,"
            " pod_uid TEXT NOT NULL,"
            " name TEXT NOT NULL) STRICT"
        ),
        "CREATE INDEX containers_by_pod ON containers(pod_uid)",
        "CREATE TABLE counters(name TEXT NOT NULL PRIMARY KEY, value INTEGER NOT NULL) STRICT",
    ),
    (
        # What a payload is now is its snapshot with its changes applied, in order of sequence.
        (
            "CREATE TABLE changes("
            " sequence INTEGER PRIMARY KEY,"
            " provider TEXT NOT NULL,"
            " token INTEGER NOT NULL,"
            " front INTEGER NOT NULL,"
            " back INTEGER NOT NULL,"
            " middle BLOB NOT NULL) STRICT"
        ),
        # The way back is to drop `change` and those behind it; NULL: `before` is the way back.
        # At most a few rows, without an index: each index is one more page to sync.
        (
            "CREATE TABLE prepared_parts("
            " sequence INTEGER PRIMARY KEY,"
            " provider TEXT NOT NULL,"
            " admission_id TEXT NOT NULL,"
            " pod_uid TEXT NOT NULL,"
            " before BLOB,"
            " change INTEGER) STRICT"
        ),
        (
            "INSERT INTO prepared_parts(sequence, provider, admission_id, pod_uid, before)"
            " SELECT sequence, provider, admission_id, pod_uid, before FROM prepared"
        ),
        "DROP TABLE prepared",
        "ALTER TABLE prepared_parts RENAME TO prepared",
    ),
    (
        # Third parties that registered, in the order in which they are asked.
        (
            "CREATE TABLE hint_providers("
            " sequence INTEGER PRIMARY KEY,"
            " name TEXT NOT NULL UNIQUE,"
            " boot TEXT NOT NULL,"
            " registration BLOB NOT NULL) STRICT"
        ),
    ),
)
"""Statements that lead from schema version i to i + 1, in order; never edited, only added to."""

SCHEMA_VERSION = len(MIGRATIONS)
