"""Where devices come from: the `devicePlugins` part of the `numalign` section.

Separate from the inventory, which describes devices that need no plugin.
"""

from __future__ import annotations

from pathlib import Path

from numalign.config.serving import socket_path
from numalign.config.settings import DevicePluginSettings
from numalign.document.section import Section, shown

REGISTRY_SOCKET = "kubelet.sock"
"""Name of the registration socket, by which plugins find it (DEV-1)."""

_KEYS = (
    "mode", "directory", "pluginsRegistry", "reportDeadline", "retryAfter", "podResourcesSocket",
    "pollInterval",
)  # fmt: skip


def read_device_plugins(section: Section) -> DevicePluginSettings:
    """The settings; an empty `pluginsRegistry` turns the plugin watcher off."""
    section.refuse_unknown(_KEYS)
    default = DevicePluginSettings()
    directory = _directory(section, "directory", default.directory)
    socket_path(section, "directory", str(directory / REGISTRY_SOCKET))
    return DevicePluginSettings(
        mode=section.choice("mode", default.mode),
        directory=directory,
        plugins_registry=_plugins_registry(section, default.plugins_registry),
        report_deadline=section.seconds("reportDeadline", default.report_deadline),
        retry_after=section.seconds("retryAfter", default.retry_after),
        pod_resources_socket=socket_path(
            section,
            "podResourcesSocket",
            section.text("podResourcesSocket", str(default.pod_resources_socket)),
        ),
        poll_interval=section.seconds("pollInterval", default.poll_interval),
    )


def _plugins_registry(section: Section, default: Path | None) -> Path | None:
    key = "pluginsRegistry"
    if key not in section:
        return default
    return _directory(section, key, Path("/")) if section.text(key) else None


def _directory(section: Section, key: str, default: Path) -> Path:
    path = Path(section.text(key, str(default)))
    if not path.is_absolute():
        section.wrong(key, f"must be an absolute path, not {shown(section.raw(key))}")
        return default
    return path
