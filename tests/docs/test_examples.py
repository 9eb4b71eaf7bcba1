"""The YAML and JSON of the documents can be read, and its configurations are accepted."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from tests.docs.pages import PAGES, name_of

from numalign.cli.main import cli

MACHINE = {
    "numa_nodes": [
        {
            "id": node,
            "memory_bytes": 64 << 30,
            "distances": [10, 21][:: 1 - 2 * node],
            "cores": [
                {"id": core, "socket_id": node, "threads": [core, core + 16]}
                for core in range(8 * node, 8 * node + 8)
            ],
        }
        for node in (0, 1)
    ]
}
"""Large enough for every configuration that is shown."""

_BLOCK = re.compile(r"^( *)```(yaml|json)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
BLOCKS = [
    pytest.param(kind, re.sub(rf"^{indent}", "", body, flags=re.MULTILINE), id=f"{name} {number}")
    for page in PAGES
    for name in [name_of(page)]
    for number, (indent, kind, body) in enumerate(_BLOCK.findall(page.read_text("utf-8")), 1)
]
CONFIGURATIONS = [
    param
    for param in BLOCKS
    if re.search(r"^numalign:|^kind: KubeletConfiguration", str(param.values[1]), re.MULTILINE)
]


@pytest.mark.parametrize(("kind", "text"), BLOCKS)
def test_it_can_be_read(kind: str, text: str) -> None:
    read = json.loads(text) if kind == "json" else list(yaml.safe_load_all(text))

    assert read


@pytest.mark.parametrize(("kind", "text"), CONFIGURATIONS)
def test_a_configuration_is_accepted(kind: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "machine.yaml").write_text(yaml.safe_dump(MACHINE))
    document = yaml.safe_load(text)
    section = document["numalign"]
    section.pop("machine", None)
    section.get("sockets", {}).pop("group", None)  # it is for the reader to make
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(document))
    command = ["config", "check", str(tmp_path / "config.yaml")]
    done = CliRunner().invoke(cli, [*command, "--machine", str(tmp_path / "machine.yaml")])

    assert done.exit_code == 0, done.output
    assert "config.yaml: no problems" in done.output


def test_configurations_are_found() -> None:
    assert len(CONFIGURATIONS) > 10
