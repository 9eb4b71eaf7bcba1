"""The line with which `numalign relay` begins, before the bytes of a service follow. Pure.

Both ends stand here, so that they cannot drift: the command in the pod, and who started it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from numalign.config.settings import Service
from numalign.errors import Unavailable

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """Where the services of the node listen, and why the one asked for was not reached."""

    sockets: Mapping[Service, str] = field(default_factory=dict)
    error: str = ""


def greeting_line(greeting: Greeting) -> bytes:
    """The line, with its end."""
    sockets = {service.value: path for service, path in greeting.sockets.items()}
    document = {"relay": _VERSION, "sockets": sockets, "error": greeting.error}
    return json.dumps(document).encode() + b"\n"


def read_greeting(line: bytes) -> Greeting:
    """What a line says. Raises Unavailable for what is none, or is another version's."""
    try:
        document = json.loads(line)
        version = document["relay"]
        if version != _VERSION:
            raise Unavailable(
                f"numalign on the node speaks version {version} of relay, and this one "
                f"{_VERSION}: use the numalign of the node's version"
            )
        known = {service.value for service in Service}
        sockets = {
            Service(name): str(path) for name, path in document["sockets"].items() if name in known
        }
        return Greeting(sockets=sockets, error=str(document["error"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        shown = line[:80].decode(errors="replace").strip()
        raise Unavailable(f'the pod answered "{shown}" in place of numalign relay') from error
