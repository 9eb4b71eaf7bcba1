"""What differs between the kubelet's way with devices and the safe one: chosen once at start.

Separate so that no algorithm asks for the mode by name.
"""

from __future__ import annotations

from dataclasses import dataclass

from numalign.device.health import HealthOf, last_reported


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStrategies:
    """How the engine treats what cannot be undone.

    `allocate_in_place`: the plugin's Allocate is called as soon as the ids of a resource are
    chosen; otherwise only when the admission is sealed, after everybody has agreed.
    `store_lazily`: only what the kubelet has stored last is durable (DEV-28, DEV-44,
    DEV-T17); otherwise the whole state is.
    `ready_after_allocation`: a container that gets devices only as it starts (DEV-40) gets them
    before plugins make its devices ready; otherwise a plugin that wants to has nothing to make
    ready, and the start fails (DEV-T12).
    `health_of`: how a device that a pod holds is doing.
    `retry_after`: a pod that asks for devices of a plugin that was there before the start and
    has not reported since is to be asked about again after so many seconds; None: it is
    judged at once, as by the kubelet.
    """

    allocate_in_place: bool
    store_lazily: bool = False
    ready_after_allocation: bool = False
    health_of: HealthOf = last_reported
    retry_after: float | None = None
