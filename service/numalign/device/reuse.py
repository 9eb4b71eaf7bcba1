"""What the containers of one pod take over from its init containers (DEV-26).

Separate from choosing ids, which only sees the set that may be reused.
"""

from __future__ import annotations

from dataclasses import replace

from numalign.device.state import DeviceState, Reusable
from numalign.model.ids import DeviceId, PodUid
from numalign.model.pod import Container


def begun(state: DeviceState, pod_uid: PodUid) -> DeviceState:
    """Forget what other pods could reuse; keep what this one can."""
    if state.reusable is not None and state.reusable.pod_uid == pod_uid:
        return state
    return replace(state, reusable=Reusable(pod_uid))


def after(state: DeviceState, pod_uid: PodUid, container: Container) -> DeviceState:
    """Settle reuse after an allocation of `container` that succeeded.

    A regular init container leaves all ids it holds to the later ones; any other container
    keeps its own from then on.
    """
    records = state.container(pod_uid, container.name)
    if not records or state.reusable is None:
        return state
    ids: dict[str, frozenset[DeviceId]] = dict(state.reusable.ids)
    for resource, record in records.items():
        before = ids.get(resource, frozenset())
        held = record.ids()
        ids[resource] = before | held if container.is_regular_init else before - held
    return replace(state, reusable=Reusable(pod_uid, ids))
