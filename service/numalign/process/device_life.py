"""What a source of devices does while the device provider runs.

Separate from the sources, so that each can be loaded without the others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from numalign.config.settings import Settings
from numalign.device.state import DeviceState
from numalign.model.ids import AdmissionId
from numalign.model.pod import Pod
from numalign.process.part import nothing, nothing_changed
from numalign.provider.servicer import PreStart


def _no_objection(settings: Settings) -> None:  # noqa: ARG001 - any will do
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLife:
    """Callbacks; see the fields of `Part` by these names.

    `look_at` is awaited before the provider is asked about a pod; None: nothing is to be
    looked up. `check` raises ConfigError for settings that cannot be reloaded. `pre_start`
    makes devices ready before a container starts; None: none needs it.
    """

    serving: Callable[[], Awaitable[None]] = nothing
    check: Callable[[Settings], None] = _no_objection
    reload: Callable[[Settings], Awaitable[tuple[str, ...]]] = nothing_changed
    close: Callable[[], Awaitable[None]] = nothing
    look_at: Callable[[AdmissionId, Pod], Awaitable[None]] | None = None
    pre_start: PreStart[DeviceState] | None = None
