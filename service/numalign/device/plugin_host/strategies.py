"""What `compatibility` means for plugins: a few choices made at start; nothing asks for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numalign.device.listing import Listed, listed_as_sent, listed_safely
from numalign.device.plugin_host.client_table import ClientTable, KubeletTable, SafeTable


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStrategies:
    """The choices.

    - `new_table`: who counts as the plugin of a resource (DEV-T7, DEV-T8).
    - `listed`: what of a device list counts, given the machine's NUMA nodes.
    - `waits_for_reports`: pods that ask for devices of a plugin that was there before the
      start are not judged until it is back.
    """

    new_table: Callable[[], ClientTable[Any]]
    listed: Listed
    waits_for_reports: bool


SAFE = HostStrategies(new_table=SafeTable, listed=listed_safely, waits_for_reports=True)
KUBELET = HostStrategies(new_table=KubeletTable, listed=listed_as_sent, waits_for_reports=False)
