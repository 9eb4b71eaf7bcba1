"""What watched plugins of any type are told, and how a failed call is put, in the kubelet's words.

Separate from what is said to plugins of one type alone.
"""

from __future__ import annotations

import re

_GO_CODES = {"CANCELLED": "Canceled"}


def no_handler(type_: str, socket: str) -> str:
    """A watched plugin is of a type that nobody here knows (DEV-9)."""
    return (
        f"RegisterPlugin error -- no handler registered for plugin type: {type_} at socket {socket}"
    )


def validation_failed(error: str) -> str:
    """A watched plugin is refused before it is connected to (DEV-9)."""
    return f"RegisterPlugin error -- plugin validation failed with err: {error}"


def registration_failed(error: str) -> str:
    """A watched plugin cannot be connected to (DEV-9)."""
    return f"RegisterPlugin error -- plugin registration failed with err: {error}"


def rpc_error(code: str, details: str) -> str:
    """A failed call as Go prints it; `code` is gRPC's name of it, such as `DEADLINE_EXCEEDED`."""
    name = _GO_CODES.get(code) or re.sub(r"(?:^|_)([A-Z])([A-Z]*)", _camel, code)
    return f"rpc error: code = {name} desc = {details}"


def _camel(word: re.Match[str]) -> str:
    return word[1] + word[2].lower()
