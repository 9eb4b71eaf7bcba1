"""Stores whose synced writes are spans. Taken instead of the plain ones where spans are recorded.

Separate from the stores, which keep and do not speak.
"""

from __future__ import annotations

from collections.abc import Sequence

from numalign.model.ids import AdmissionId, PodUid
from numalign.store.admission_store import AdmissionRow, AdmissionStore
from numalign.store.database import Database
from numalign.store.provider_store import ProviderStore
from numalign.telemetry.tracing import active_tracer, span


class TracedAdmissionStore(AdmissionStore):
    """Records admitted pods, each in a span."""

    async def commit_all(
        self, rows: Sequence[AdmissionRow], *, synced: bool = True
    ) -> tuple[int, ...]:
        """Record pods."""
        with span("store commit", synced=synced):
            return await super().commit_all(rows, synced=synced)


class TracedProviderStore(ProviderStore):
    """Keeps a provider's books; preparing an admission is a span."""

    async def prepare(
        self,
        admission_id: AdmissionId,
        pod_uid: PodUid,
        before: bytes | None,
        after: bytes,
        *,
        synced: bool = True,
    ) -> None:
        """Make `after` the payload and keep `before`."""
        with span("store prepare", synced=synced and self.durable):
            await super().prepare(admission_id, pod_uid, before, after, synced=synced)


def admission_store(database: Database) -> AdmissionStore:
    """The record's store, traced if the process is."""
    return AdmissionStore(database) if active_tracer() is None else TracedAdmissionStore(database)


def provider_store(database: Database, provider: str, *, durable: bool) -> ProviderStore:
    """A provider's store, traced if the process is."""
    store = ProviderStore if active_tracer() is None else TracedProviderStore
    return store(database, provider, durable=durable)
