"""`numalign top`, drawn once."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner
from tests.unit.cli.rendering import text_of
from tests.unit.cli.report.nodes import node

from numalign.cli.main import cli
from numalign.cli.report.top_view import top_parts
from numalign.cli.snapshot.document import document_of


def test_the_view_has_map_owners_decisions_and_troubles() -> None:
    text = text_of(top_parts(node(), ["cpu service: away"], 5), width=140)
    for expected in (
        "policy restricted",
        "NUMA node 1",
        "2A 3A",
        "gpu-0A",
        "A  default/web/c",
        "default/big",
        "TopologyAffinityError",
        "cpu service: away",
    ):
        assert expected in text, expected


def test_of_a_snapshot(tmp_path: Path) -> None:
    file = tmp_path / "node.json"
    file.write_text(json.dumps(document_of(node())))
    drawn = CliRunner().invoke(cli, ["top", "--snapshot", str(file)])
    assert drawn.exit_code == 0
    assert "NUMA node 0" in drawn.output
    plain = CliRunner().invoke(cli, ["top", "--snapshot", str(file), "-o", "json"])
    assert json.loads(plain.stdout) == document_of(node())


def test_no_service(tmp_path: Path) -> None:
    env = {"NUMALIGN_SOCKET": str(tmp_path / "nobody.sock")}
    result = CliRunner().invoke(cli, ["top", "--once"], env=env)
    assert result.exit_code == 1
    assert "cannot reach the topology service" in result.stderr
