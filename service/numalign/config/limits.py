"""The `limits` part of the `numalign` section: what one server lets its callers have."""

from __future__ import annotations

from numalign.config.settings import LimitSettings
from numalign.document.section import Section

_KEYS = (
    "connections",
    "calls",
    "handshakeTimeout",
    "requestTimeout",
    "callTimeout",
    "streamIdleTimeout",
)


def read_limits(section: Section) -> LimitSettings:
    """The limits; mistakes are recorded and the default returned for them."""
    section.refuse_unknown(_KEYS)
    default = LimitSettings()
    return LimitSettings(
        connections=section.integer("connections", default.connections, 1),
        calls=section.integer("calls", default.calls, 1),
        handshake_timeout=section.seconds("handshakeTimeout", default.handshake_timeout),
        request_timeout=section.seconds("requestTimeout", default.request_timeout),
        call_timeout=section.seconds("callTimeout", default.call_timeout),
        stream_idle_timeout=section.seconds("streamIdleTimeout", default.stream_idle_timeout),
    )
