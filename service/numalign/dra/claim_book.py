"""The claims that are kept, in memory and on disk: the DRA service's own state.

Separate from who changes them. A change is on disk before anybody can see it, and a change that
changes nothing is not written (DRA-T6). What drivers had prepared survives a restart of the
service (DRA-T8), but not one of the node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from numalign.dra.claim_changes import after_boot
from numalign.dra.claim_codec import Stored, decode, encode
from numalign.dra.values import Claims
from numalign.errors import StateError
from numalign.store.carried import carried_through
from numalign.store.provider_store import ProviderStore

Change = Callable[[Claims], Claims]


class ClaimBook:
    """The book of one node. Open it with `open_book`."""

    def __init__(self, store: ProviderStore, stored: Stored, reports: tuple[str, ...]) -> None:
        self._store = store
        self._boot = stored.boot
        self._lock = asyncio.Lock()
        self.claims = stored.by_key()
        self.whole = stored.whole
        self.reports = reports

    async def change(self, change: Change) -> Claims:
        """Write and take over what `change` makes of the claims; the claims after.

        Raises StateError where they cannot be written; nothing has changed then.
        """
        return await carried_through(self._change(change, completes=False))

    async def complete(self, change: Change) -> None:
        """The same, and the claims are all that there are from now on."""
        await carried_through(self._change(change, completes=True))

    async def _change(self, change: Change, *, completes: bool) -> Claims:
        async with self._lock:
            claims, whole = change(self.claims), self.whole or completes
            if claims != self.claims or whole != self.whole:
                stored = Stored(self._boot, whole, tuple(claims.values()))
                await self._store.save(encode(stored), synced=True)
                self.claims, self.whole = claims, whole
            return self.claims


async def open_book(store: ProviderStore, boot: str) -> ClaimBook:
    """The book over what is stored; `boot` is the node's present one.

    What cannot be read is reported, and the record of admitted pods gives back what it knows.
    """
    payload = (await store.load()).payload
    reports: tuple[str, ...] = ()
    stored = Stored(boot, whole=False)
    if payload is not None:
        try:
            stored = decode(payload)
        except StateError as error:
            reports = (f"{error}; they are taken from the record of admitted pods",)
    if stored.boot != boot:
        claims = after_boot(stored.by_key())
        stored = Stored(boot, stored.whole, tuple(claims.values()))
        await store.save(encode(stored), synced=True)
    return ClaimBook(store, stored, reports)
