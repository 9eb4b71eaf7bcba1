"""What a runtime can do, from the name and the version that it gives."""

from __future__ import annotations

import re

from numalign.kube.nri.v1alpha1 import api_pb2 as nri

WANTED_EVENTS = (
    nri.RUN_POD_SANDBOX,
    nri.STOP_POD_SANDBOX,
    nri.REMOVE_POD_SANDBOX,
    nri.CREATE_CONTAINER,
    nri.UPDATE_CONTAINER,
    nri.STOP_CONTAINER,
    nri.REMOVE_CONTAINER,
)
"""What the plugin wants to hear: nothing that the oldest runtime does not know."""

_VERSION = re.compile(r"v?([0-9]+)\.([0-9]+)(?:\.([0-9]+))?")

# The first releases that hand CDI devices of a plugin on to the container.
_CDI = {"containerd": (2, 1, 0), "cri-o": (1, 34, 0)}

# The first release in which a plugin that registers cannot lock the runtime up.
_SAFE_REGISTRATION = {"containerd": (1, 7, 16)}


def event_mask(*events: nri.Event.ValueType) -> int:
    """The bits that ask for events. 0 would ask for all, so at least one is needed."""
    mask = 0
    for event in events:
        mask |= 1 << (event - 1)
    return mask


def version_of(text: str) -> tuple[int, int, int] | None:
    """Major, minor and patch of a version such as `v2.1.9` or `1.7.24~ds1`; None if it is none."""
    found = _VERSION.match(text)
    return None if found is None else (int(found[1]), int(found[2]), int(found[3] or 0))


def hands_on_cdi(runtime: str, version: str) -> bool:
    """Whether CDI devices that a plugin adds reach the container. Unknown runtimes may."""
    return not _is_before(_CDI, runtime, version)


def registers_safely(runtime: str, version: str) -> bool:
    """Whether a plugin can register while containers start without locking the runtime up."""
    return not _is_before(_SAFE_REGISTRATION, runtime, version)


def _is_before(first: dict[str, tuple[int, int, int]], runtime: str, version: str) -> bool:
    needed, has = first.get(runtime.lower()), version_of(version)
    return needed is not None and has is not None and has < needed
