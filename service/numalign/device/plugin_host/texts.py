"""What plugins are told, and what is said of them, in the kubelet's words.

The one place where these texts stand; plugin authors and users match on them. Where the
kubelet would wait for ever it has no words, and the texts are our own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from numalign.model.quoting import quoted

API_VERSION = "v1beta1"
"""The only version of the device plugin interface (DEV-1)."""

PLUGIN_TYPE = "DevicePlugin"
"""What a device plugin calls itself to the plugin watcher (DEV-8)."""

_GO_CODES = {"CANCELLED": "Canceled"}


def unsupported_version(version: str) -> str:
    """A plugin registers with a version that is not spoken (DEV-7)."""
    return (
        f"requested API version {quoted(version)} is not supported by kubelet. "
        f'Supported version is ["{API_VERSION}"]'
    )


def invalid_resource(name: str) -> str:
    """A plugin registers for a resource that cannot be one (DEV-7)."""
    return f"the ResourceName {quoted(name)} is invalid"


def invalid_watched_resource(name: str) -> str:
    """The same, found by the plugin watcher (DEV-8)."""
    return f"invalid name of device plugin socket: {invalid_resource(name)}"


def no_common_version(versions: Iterable[str]) -> str:
    """A watched plugin does not speak our version (DEV-8)."""
    return (
        f"manager version, {API_VERSION}, is not among plugin supported versions "
        f"[{' '.join(versions)}]"
    )


def dial_failed(error: str) -> str:
    """A plugin's socket does not answer (DEV-10)."""
    return f"failed to dial device plugin: {error}"


def options_failed(error: str) -> str:
    """A plugin does not say which calls it wants (DEV-10)."""
    return f"failed to get device plugin options: {error}"


def stopped(resource: str) -> str:
    """A plugin is called whose connection has ended (DEV-12)."""
    return f"endpoint {resource} has been stopped"


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


def too_late(resource: str, call: str, seconds: float) -> str:
    """A plugin did not answer in the time that an admission has."""
    return f"device plugin of {resource} did not answer {call} within {seconds:.3g} s"


def _camel(word: re.Match[str]) -> str:
    return word[1] + word[2].lower()
