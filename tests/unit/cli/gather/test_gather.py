"""`numalign gather`: everything is in the bundle but secrets, and what is missing is named."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.integration.served_node import ServedNode
from tests.observability.prometheus import free_port
from tests.unit.process.observed_world import document, pod

from numalign.cli.gather.machine_facts import machine_facts
from numalign.cli.gather.scrub import scrubbed
from numalign.cli.main import cli

SECRET = "hunter2-hunter2"


def gather(directory: Path, *arguments: str, **variables: str) -> tuple[Result, dict[str, str]]:
    """Run it; the files of the bundle by name."""
    bundle = directory / "b.tar.gz"
    socket = directory / "run" / "admission.sock"
    env = {"NUMALIGN_SOCKET": str(socket), **variables}
    result = CliRunner().invoke(cli, ["gather", "--to", str(bundle), *arguments], env=env)
    assert bundle.stat().st_mode & 0o777 == 0o600
    files = {}
    with tarfile.open(bundle) as archive:
        for member in archive:
            extracted = archive.extractfile(member)
            assert extracted is not None
            assert member.name.startswith("b/")
            files[member.name.removeprefix("b/")] = extracted.read().decode()
    return result, files


def test_a_node_with_secrets_on_it(tmp_path: Path) -> None:
    node = ServedNode(tmp_path)
    address = f"127.0.0.1:{free_port()}"
    written = {
        **document(tmp_path, secondOwner="tolerate", metrics={"address": address}),
        "staticPodURLHeader": {"Authorization": [f"Bearer {SECRET}"]},
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(written))
    secretive = pod("a")
    container = secretive.spec.containers[0]
    container.command.append(SECRET)
    container.env.add(name="PASSWORD", value=SECRET)
    log = tmp_path / "numalign.log"
    log.write_text(f"started\nAuthorization: Bearer {SECRET}\n")
    node.start("all")
    try:
        node.admit(secretive)
        node.admit(pod("big", cpu="40"))
        headers = {"OTEL_EXPORTER_OTLP_HEADERS": f"key={SECRET}"}
        result, files = gather(tmp_path, "--log", str(log), **headers)
    finally:
        node.stop()
    assert (result.exit_code, result.stderr) == (0, "")
    assert not [name for name, text in files.items() if SECRET in text]
    assert json.loads(files["snapshot.json"])["kind"] == "NumalignSnapshot"
    assert "default/big" in files["report.html"]
    assert "numalign_admissions_total" in files["metrics/all.txt"]
    assert files["problems.txt"] == ""
    assert "started" in files["logs/1-numalign.log"]
    assert "OTEL_EXPORTER_OTLP_HEADERS=<left out>" in files["environment.txt"]
    assert {"README.txt", "machine/uname", "machine/proc/meminfo"} <= files.keys()


def test_without_a_node_there_is_still_a_bundle(tmp_path: Path) -> None:
    result, files = gather(tmp_path, "--log", str(tmp_path / "none.log"))
    assert result.exit_code == 1
    for line in ("cannot reach the topology service", f"log {tmp_path}/none.log: No such file"):
        assert line in files["problems.txt"]
        assert line in result.stderr
    assert "snapshot.json" not in files
    assert "machine/uname" in files


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    arguments = ["gather", "--to", str(tmp_path / "no" / "b.tar.gz")]
    env = {"NUMALIGN_SOCKET": str(tmp_path / "nobody.sock")}
    result = CliRunner().invoke(cli, arguments, env=env)
    assert result.exit_code == 1
    assert "b.tar.gz: No such file or directory" in result.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nothing to hide: 3 of 4", "nothing to hide: 3 of 4"),
        ("Authorization: Bearer abcdef123", "Authorization: <left out> <left out>"),
        ("curl -H 'x: bearer abcdef123'", "curl -H 'x: bearer <left out>'"),
        ('{"token": "abc", "a": 1}', '{"token": <left out>, "a": 1}'),
        ("DB_PASSWORD=abc next", "DB_PASSWORD=<left out> next"),
        ("at https://user:pass@host/x", "at https://<left out>@host/x"),
        ("got eyJhbGciOi.eyJzdWIi.c2ln here", "got <left out> here"),
        (
            "a\n-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nb",
            "a\n<left out>\nb",
        ),
        ("-----BEGIN PRIVATE KEY-----\nMII and cut", "<left out>"),
    ],
)
def test_scrubbing(text: str, expected: str) -> None:
    assert scrubbed(text) == expected


def test_the_machine_below_another_root(tmp_path: Path) -> None:
    node = tmp_path / "sys/devices/system/node/node1"
    node.mkdir(parents=True)
    (node / "cpulist").write_text("4-7\n")
    assert machine_facts(tmp_path)["sys/devices/system/node/node1/cpulist"] == "4-7\n"
