"""Files of deploy/ that are made from others say what those say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.manifests import OPERATOR, of_kind, rendered

_TOOL = Path(__file__).parents[2] / "tools" / "deploy_files.py"


def tool() -> Any:
    """The script as a module; it is in no package."""
    spec = importlib.util.spec_from_file_location("deploy_files", _TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_they_are_up_to_date() -> None:
    for path, text in tool().made_files().items():
        assert path.read_text(encoding="utf-8") == text, f"run python {_TOOL.name}: {path}"


@pytest.mark.e2e
def test_the_operators_rules_are_the_rules() -> None:
    (rule,) = of_kind(rendered(OPERATOR), "PrometheusRule")

    assert rule["spec"] == yaml.safe_load(tool().RULES.read_text(encoding="utf-8"))


@pytest.mark.e2e
def test_the_operator_finds_the_pods() -> None:
    """A label that the pods have, and a name that their ports have."""
    (monitor,) = of_kind(rendered(OPERATOR), "PodMonitor")
    (daemon_set,) = of_kind(rendered("overlays/nri"), "DaemonSet")
    template = daemon_set["spec"]["template"]
    ports = {
        port["name"]
        for container in template["spec"]["containers"]
        for port in container.get("ports", ())
    }

    assert monitor["metadata"]["namespace"] == daemon_set["metadata"]["namespace"]
    labels = monitor["spec"]["selector"]["matchLabels"]
    assert labels.items() <= template["metadata"]["labels"].items()
    assert {end["port"] for end in monitor["spec"]["podMetricsEndpoints"]} <= ports
