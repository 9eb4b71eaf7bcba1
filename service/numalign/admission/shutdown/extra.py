"""Loading what follows systemd-logind, whose library for D-Bus is an extra."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from numalign.admission.shutdown.port import Announcer
from numalign.errors import ConfigError

OpenBus = Callable[[str | None], AbstractAsyncContextManager[Announcer]]
"""Connects to logind on the bus at an address; None: the system bus."""


def load_logind() -> OpenBus:
    """What connects to logind. Raises ConfigError where the extra is not installed."""
    try:
        from numalign.admission.shutdown.logind import open_logind  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "dbus_fast":
            raise
        raise ConfigError(
            'numalign.admission.shutdown.source: "logind" needs the package dbus-fast: '
            "pip install 'numalign[logind]'"
        ) from error
    return open_logind
