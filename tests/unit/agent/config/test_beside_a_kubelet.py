"""What a configuration with the kubelet as source may say besides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from numalign.errors import ConfigError
from numalign_agent.config.loading import load_settings

KUBELET = {"socket": "/run/pods.sock"}


def load(tmp_path: Path, agent: Any, **kubelet: Any) -> Any:
    overrides: dict[tuple[str, ...], object] = {
        ("numalign", "stateDirectory"): str(tmp_path),
        ("numalign", "runtimeDirectory"): str(tmp_path),
    }
    overrides |= {("numalign", "agent", name): value for name, value in agent.items()}
    overrides |= {(name,): value for name, value in kubelet.items()}
    return load_settings(None, overrides)


def test_it_stands_alone_with_the_recorder(tmp_path: Path) -> None:
    settings = load(tmp_path, {"kubelet": KUBELET, "runner": "recorder"})

    assert settings.kubelet.socket == Path("/run/pods.sock")


@pytest.mark.parametrize(
    ("agent", "kubelet", "why"),
    [
        pytest.param({}, {}, "goes with runner: recorder only", id="process-runner"),
        pytest.param({"api": {}}, {}, "goes without staticPodPath", id="api"),
        pytest.param({}, {"staticPodPath": "/m"}, "goes without staticPodPath", id="files"),
        pytest.param({}, {"staticPodURL": "http://x/"}, "goes without staticPodPath", id="url"),
    ],
)
def test_what_does_not_go_with_it(tmp_path: Path, agent: Any, kubelet: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=f"numalign.agent.kubelet: .*{why}"):
        load(tmp_path, {"kubelet": KUBELET, **agent}, **kubelet)
