"""A provider's books as a start finds them in its store.

Separate from the ledger, which carries them on from there.
"""

from __future__ import annotations

from typing import TypeVar

from numalign.errors import StateError
from numalign.provider.cleanup import Cleanup
from numalign.provider.engine import Engine, Started
from numalign.provider.ledger import Ledger
from numalign.provider.phases import Phases, Prepared, Standing
from numalign.store.provider_store import ProviderStore

S = TypeVar("S")


async def open_ledger(
    engine: Engine[S], store: ProviderStore, cleanup: Cleanup[S], *, recorded: bool
) -> Ledger[S]:
    """A ledger over what the store holds; `recorded` as for the ledger.

    Raises StartError where the engine's start check refuses the stored state. A stored state
    that cannot be read at all is reported, and the books begin empty: the Topology Manager's
    record gives back what it knows.
    """
    stored = await store.load()
    started = _started(engine, stored.payload)
    payload = engine.encode(started.state)
    prepared = {}
    for part in stored.prepared:
        before = _started(engine, part.before).state
        standing = Standing(before, engine.encode(before))
        prepared[part.admission_id] = Prepared(part.pod_uid, standing)
    if payload != stored.payload and not prepared:
        await store.save(payload)
    phases = Phases(
        name=engine.name,
        books=Standing(started.state, payload),
        prepared=prepared,
        in_doubt=bool(prepared),
    )
    return Ledger(engine, store, cleanup, phases, started.reports, recorded=recorded)


def _started(engine: Engine[S], payload: bytes | None) -> Started[S]:
    try:
        return engine.start(payload)
    except StateError as error:
        return Started(engine.start(None).state, (f"set aside: {error}",))
