"""Giving devices back: of pods that are gone, of one pod, and of failed allocations.

Separate from taking them, because it works on records alone and asks no plugin.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from numalign.device.state import DeviceState, Records, StoredDevices
from numalign.model.ids import DeviceId, PodUid
from numalign.provider.engine import Sources


def allocated_by(records: Records) -> dict[str, frozenset[DeviceId]]:
    """The ids in use by resource, from the records alone."""
    found: dict[str, set[DeviceId]] = {}
    for containers in records.values():
        for resources in containers.values():
            for resource, record in resources.items():
                found.setdefault(resource, set()).update(*record.ids_by_node.values())
    return {resource: frozenset(ids) for resource, ids in found.items()}


def rebuilt(state: DeviceState) -> DeviceState:
    """Count only recorded ids as in use, which ends phantom allocations (DEV-38, DEV-T6)."""
    return replace(state, allocated=allocated_by(state.records))


def without_inactive(state: DeviceState, sources: Sources) -> DeviceState:
    """Drop the records of pods that are not active (DEV-21).

    Nothing happens while the sources are not ready or say nothing. What failed allocations
    took comes free only if some pod is dropped.
    """
    active = sources.active
    if active is None or not sources.ready or all(pod in active for pod in state.records):
        return state
    gone = frozenset(pod for pod in state.records if pod not in active)
    return rebuilt(replace(state, records=_without(state.records, gone)))


def without_pod(state: DeviceState, pod_uid: PodUid) -> DeviceState:
    """Give back everything one pod holds, from the stored form as well."""
    reusable = state.reusable
    if reusable is not None and reusable.pod_uid == pod_uid:
        state = replace(state, reusable=None)
    if pod_uid in state.written.records:
        kept = _without(state.written.records, {pod_uid})
        state = replace(state, written=StoredDevices(kept, state.written.served))
    if pod_uid not in state.records:
        return state
    return rebuilt(replace(state, records=_without(state.records, {pod_uid})))


def _without(records: Records, gone: Container[PodUid]) -> Records:
    return {pod_uid: held for pod_uid, held in records.items() if pod_uid not in gone}
