"""The `devicePlugins` section: directories, modes, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from numalign.config.settings import DevicePluginSettings, DeviceSource, Settings
from numalign.document.problems import DocumentError

Read = Callable[[str], Settings]


def test_host_mode(settings: Read) -> None:
    read = settings(
        "numalign: {devicePlugins: {mode: host, directory: /run/dp, pluginsRegistry: /run/pr}}"
    )

    assert read.device_plugins == DevicePluginSettings(
        mode=DeviceSource.HOST, directory=Path("/run/dp"), plugins_registry=Path("/run/pr")
    )


def test_the_plugin_watcher_can_be_turned_off(settings: Read) -> None:
    read = settings('numalign: {devicePlugins: {mode: host, pluginsRegistry: ""}}')

    assert read.device_plugins.plugins_registry is None


def test_observer_mode(settings: Read) -> None:
    read = settings(
        "numalign: {devicePlugins: {mode: observer, podResourcesSocket: /run/k.sock, "
        "pollInterval: 3s, retryAfter: 1s}}"
    )

    assert read.device_plugins == DevicePluginSettings(
        mode=DeviceSource.OBSERVER,
        pod_resources_socket=Path("/run/k.sock"),
        poll_interval=3.0,
        retry_after=1.0,
    )


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        pytest.param(
            "{podResourcesSocket: k.sock}",
            "numalign.devicePlugins.podResourcesSocket: must be the absolute path of a Unix "
            'socket, not "k.sock"',
            id="kubelet socket",
        ),
        pytest.param(
            "{mode: guest}",
            'numalign.devicePlugins.mode: must be one of "static", "host", "observer", not "guest"',
            id="mode",
        ),
        pytest.param(
            "{directory: plugins}",
            'numalign.devicePlugins.directory: must be an absolute path, not "plugins"',
            id="directory",
        ),
        pytest.param(
            "{pluginsRegistry: plugins}",
            'numalign.devicePlugins.pluginsRegistry: must be an absolute path, not "plugins"',
            id="registry",
        ),
        pytest.param(
            "{directory: /" + "d" * 96 + "}",
            "numalign.devicePlugins.directory: /"
            + "d" * 96
            + "/kubelet.sock has 110 bytes; a socket takes 107",
            id="too-long",
        ),
        pytest.param(
            "{reportDeadline: 0s}",
            'numalign.devicePlugins.reportDeadline: must be longer than 0, not "0s"',
            id="deadline",
        ),
    ],
)
def test_refused(settings: Read, section: str, expected: str) -> None:
    with pytest.raises(DocumentError) as refused:
        settings(f"numalign: {{devicePlugins: {section}}}")

    assert expected in str(refused.value)


def test_described_devices_belong_to_static_mode(settings: Read) -> None:
    with pytest.raises(DocumentError) as refused:
        settings("numalign: {devicePlugins: {mode: host}, devices: [{resource: a.b/c}]}")

    assert "numalign.devices: cannot be given with devicePlugins.mode host" in str(refused.value)
