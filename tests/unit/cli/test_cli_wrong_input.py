"""What every command says to input that users give by mistake: one plain line, and its code."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Run

from numalign.cli.calls import Unreachable
from numalign.cli.endpoint import Endpoint
from numalign.config.settings import Service


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with files of every wrong kind."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dir").mkdir()
    (tmp_path / "empty").touch()
    (tmp_path / "broken").write_text("a: [")
    (tmp_path / "latin").write_bytes(b"\xff\xfe")
    return tmp_path


UTF8 = "cannot be read: it is not UTF-8: invalid start byte at byte 0"
MISSING = "cannot be read: No such file or directory"


@pytest.mark.parametrize(
    ("command", "code", "line"),
    [
        ("config check gone", 1, f"gone: {MISSING}"),
        ("config check dir", 1, "dir: cannot be read: Is a directory"),
        ("config check latin", 1, f"latin: {UTF8}"),
        ("config check broken", 1, "broken: line 2, column 1: while parsing"),
        ("serve all --config gone", 1, f"gone: {MISSING}"),
        ("admit gone", 1, "gone: No such file or directory"),
        ("admit empty", 1, "empty: there is no pod in it"),
        ("admit -", 1, "standard input: there is no pod in it"),
        ("admit --config gone -", 1, "standard input: there is no pod in it"),
        ("release gone.yaml", 1, "gone.yaml: No such file or directory"),
        ("machine --root gone", 1, "gone: is no directory"),
        ("machine --root dir", 1, "dir: neither sysfs nor proc/cpuinfo shows any CPU"),
        ("machine --file gone", 1, f"gone: {MISSING}"),
        ("machine --file empty", 1, "empty: numa_nodes: must name at least one node"),
        ("simulate --snapshot broken broken", 1, "broken: documents[0]: cannot be decoded: line"),
        ("top --once --snapshot gone", 1, "gone: No such file or directory"),
        ("top --once --snapshot empty", 1, "empty: is no snapshot: "),
        ("report --snapshot latin -o x.html", 1, "latin: is no snapshot: "),
        ("import --pods gone", 1, "gone: No such file or directory"),
        (
            "import --kubelet-root dir --state-directory s",
            1,
            "dir holds no state file of a kubelet",
        ),
        ("replay gone", 2, f"gone: {MISSING}"),
        ("replay dir", 2, "dir: cannot be read: Is a directory"),
        ("replay empty", 2, "empty: holds no record"),
    ],
)
def test_a_wrong_file(run: Run, place: Path, command: str, code: int, line: str) -> None:
    result = run("--output", "json", *command.split(), stdin="")

    assert result.exit_code == code, result.output
    said = (result.stderr + result.stdout).splitlines()
    assert len(said) == 1
    assert said[0].startswith(f"numalign: {line}")
    assert said[0].count(str(place)) == 0


@pytest.mark.parametrize(
    "command",
    [
        "status --timeout 0",
        "status --timeout soon",
        "status --timeout nan",
        "admit x --timeout inf",
        "top --interval nan",
        "status --socket=",
        "status --config=",
        "admit",
        "release",
        "explain",
        "machine --root a --file b",
        "serve",
        "serve everything",
        "serve cpu --processes",
        "replay x --jobs 0",
        "metrics list --service kubelet",
        "completion tcsh",
        "report",
        "simulate",
        "relay kubelet",
        "top --node n --socket s",
        "status --node n --config c",
        "report --node n --snapshot s -o x.html",
        "simulate --node n --machine m x",
    ],
)
def test_wrong_usage(run: Run, command: str) -> None:
    result = run(*command.split())

    assert result.exit_code == 2
    assert "\nError: " in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    "command",
    ["release u", "status --resources", "providers", "explain web", "history", "top --once"],
)
def test_nobody_listens(run: Run, command: str) -> None:
    result = run(*command.split())

    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("numalign: cannot reach the ")
    assert line.endswith(
        'No such file or directory (is "numalign serve" running? --socket names another place)'
    )


def test_a_place_that_no_socket_can_have(run: Run) -> None:
    result = run("providers", "--socket", f"/tmp/{'x' * 300}/admission.sock")

    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("numalign: ")
    assert "topology" in line
    assert "dra.sock" not in line


def test_why_nobody_is_reached(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(tmp_path / "old.sock"))

    def said(name: str, reason: str) -> str:
        return str(Unreachable(Service.CPU, Endpoint(tmp_path / name), reason))

    assert "there is something that is no socket" in said("file", "Connection refused")
    assert "there is something that is no socket" in said(".", "Connection refused")
    assert 'is "numalign serve" running?' in said("old.sock", "Connection refused")
    assert "numalign.sockets" in said("old.sock", os.strerror(13))
    assert "serve" not in said("old.sock", os.strerror(13))


def test_why_nobody_is_reached_on_another_node(tmp_path: Path) -> None:
    place = Endpoint(tmp_path / "cpu.sock", "/run/cpu.sock", "pod a/b on node n")

    assert str(Unreachable(Service.CPU, place, "Connection refused")) == (
        "cannot reach the cpu service at /run/cpu.sock of pod a/b on node n: Connection refused "
        "(the log of its container may say why)"
    )
