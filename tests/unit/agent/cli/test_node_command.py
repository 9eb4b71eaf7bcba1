"""`numalign-agent node`: what its options make of the configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from numalign_agent.cli.main import cli
from numalign_agent.config.loading import Overrides, document_with
from numalign_agent.node import serving

FILE = {"numalign": {"agent": {"api": {}, "node": {"address": "127.0.0.1:1"}}}}


def agent_section(
    monkeypatch: pytest.MonkeyPatch, path: Path, document: dict[str, Any], *arguments: str
) -> Any:
    """The agent's section as the command would have it."""
    path.write_text(yaml.safe_dump(document))
    found: list[Any] = []

    def serve(config: Path | None, overrides: Overrides) -> None:
        found.append(document_with(config, overrides)["numalign"])

    monkeypatch.setattr(serving, "serve", serve)
    result = CliRunner().invoke(cli, ["node", "--config", str(path), *arguments])
    assert result.exit_code == 0, result.output
    return found[0]["agent"]


def test_options_go_before_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    agent = agent_section(
        monkeypatch,
        path,
        FILE,
        *("--node-name", "n1", "--address", "127.0.0.1:2", "--kubeconfig", "/k"),
    )

    assert agent == {
        "nodeName": "n1",
        "api": {"kubeconfig": "/k"},
        "node": {"address": "127.0.0.1:2"},
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, {}, id="none"),
        pytest.param({"topology": None}, {}, id="null"),
        pytest.param({"topology": {"interval": "5s"}}, {"interval": "5s"}, id="the-files"),
    ],
)
def test_the_topology_is_exported_as_the_file_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: dict[str, Any], expected: object
) -> None:
    document = {"numalign": {"agent": {"api": {}, "node": given}}}
    agent = agent_section(monkeypatch, tmp_path / "c.yaml", document, "--export-topology")

    assert agent["node"]["topology"] == expected


def test_every_mistake_is_a_line(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    wrong = {"node": {"checkInterval": "soon"}, "nri": {}, "api": {}}
    path.write_text(yaml.safe_dump({"numalign": {"agent": wrong}}))
    result = CliRunner().invoke(cli, ["node", "--config", str(path)], env={"HOME": "/nonexistent"})

    assert result.exit_code == 1
    assert "numalign.agent.node.checkInterval: must be a duration" in result.output
    assert "numalign.agent.nri.address: must be given with a port" in result.output
