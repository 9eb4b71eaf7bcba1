"""What plugins are told, and what is said of them, in the kubelet's words.

The one place where these texts stand; plugin authors and users match on them. Where the
kubelet would wait for ever it has no words, and the texts are our own.
"""

from __future__ import annotations

from collections.abc import Iterable

from numalign.model.quoting import quoted

API_VERSION = "v1beta1"
"""The only version of the device plugin interface (DEV-1)."""

PLUGIN_TYPE = "DevicePlugin"
"""What a device plugin calls itself to the plugin watcher (DEV-8)."""


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


def too_late(resource: str, call: str, seconds: float) -> str:
    """A plugin did not answer in the time that an admission has."""
    return f"device plugin of {resource} did not answer {call} within {seconds:.3g} s"
