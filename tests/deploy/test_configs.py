"""The configurations of deploy/ are ones that services and plugin take without a warning."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.deploy.manifests import CONFIGS, KUSTOMIZE

from numalign.config.loader import load_settings
from numalign.config.settings import CORE_SERVICES, DeviceSource, SecondOwner
from numalign_agent.config.loading import document_with
from numalign_agent.config.loading import load_settings as load_agent_settings
from numalign_agent.node.settings import node_settings
from numalign_agent.nri.settings import nri_settings


@pytest.mark.parametrize("config", CONFIGS)
def test_the_services_take_it(config: str) -> None:
    settings = load_settings(KUSTOMIZE / config, {}, is_root=False)

    assert settings.warnings == ()
    assert settings.second_owner is SecondOwner.REFUSE
    assert settings.host_root == Path("/host")
    assert settings.state_directory == Path("/var/lib/numalign")
    assert {settings.endpoints[service].parent for service in CORE_SERVICES} == {
        Path("/run/numalign/sockets")
    }


@pytest.mark.parametrize("config", [name for name in CONFIGS if name != "base/config.yaml"])
def test_the_agents_take_it(config: str) -> None:
    path = KUSTOMIZE / config
    services = load_settings(path, {}, is_root=False)

    agent = load_agent_settings(path, {("numalign", "agent", "nodeName"): "node-1"})
    plugin = nri_settings(document_with(path, {}))
    node = node_settings(document_with(path, {}))

    assert agent.node_name == "node-1"
    assert agent.api is not None
    assert agent.admission_socket == Path("/run/numalign/sockets/admission.sock")
    assert plugin.address is not None
    assert node.address is not None
    assert node.runtime_page == f"http://127.0.0.1:{plugin.address.port}/readyz"
    assert (node.remove_taint, node.restore_after, node.topology) == (True, None, None)
    # Who hands out devices has to give them to containers, and nobody else may.
    assert plugin.inject_devices == (services.device_plugins.mode is DeviceSource.HOST)
