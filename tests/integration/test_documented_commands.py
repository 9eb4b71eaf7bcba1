"""The commands of docs/cli.md, run, and held to the outputs that are shown there.

They run beside the node of the demonstration, whose answers do not depend on the machine.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from numalign.cli.main import cli
from numalign_agent.cli.main import cli as agent_cli

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "service" / "numalign" / "cli" / "demo"
SAMPLES = ROOT / "deploy" / "samples"
MORE = """
apiVersion: v1
kind: Pod
metadata: {name: more}
spec:
  containers:
    - {name: c, resources: {limits: {cpu: "10", memory: 1Gi}}}
"""

EXPECTED_CODES = {"admit 05-analytics.yaml": 3, "config check bad.yaml": 1}
ANOTHER_NODE = ("admit web.yaml --resize",)
"""Shown from a node with a Node object; tests/integration/test_resize_chain.py runs it."""

HERE = {
    "admit", "completion", "config", "explain", "history", "machine", "metrics", "providers",
    "release", "report", "simulate", "snapshot", "status", "top",
}  # fmt: skip
"""Sub-commands that run here. The others start, import or record: they have tests of their own."""


@dataclass(frozen=True)
class Example:
    """A command as documented, without the `numalign`, and the output shown below it."""

    command: str
    output: str

    @property
    def runs_here(self) -> bool:
        # tests/e2e/test_other_node.py looks at nodes elsewhere in the cluster.
        elsewhere = "--node" in self.command.split() or self.command in ANOTHER_NODE
        return self.command.split()[0] in HERE and not elsewhere


def examples_of(text: str) -> Iterator[Example]:
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            line = re.sub(r"^source <\((.*)\)$", r"\1", line).partition(" > ")[0]
            if line.startswith("numalign "):
                yield Example(line.removeprefix("numalign "), output)


CLI_PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
EXAMPLES = tuple(examples_of(CLI_PAGE))


def normal(text: str, directory: Path) -> list[str]:
    """The lines without what differs from run to run, such as places, times and revisions."""
    text = text.replace(str(directory / "run"), "/run/numalign")
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", text)
    text = re.sub(r"\d+(\.\d+)? ms", "N ms", text)
    text = re.sub(r"revision \d+", "revision N", text)
    text = re.sub(r" up +\d+ +\S+ +safe", " up PID VERSION safe", text)
    return [re.sub(r"  +", "  ", line).rstrip() for line in text.strip("\n").splitlines()]


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    """A directory with a short path, since outputs show sockets in it."""
    path = Path(tempfile.mkdtemp(prefix="nd-", dir="/tmp"))
    for name in ("config.yaml", "machine.yaml"):
        shutil.copy(DEMO / name, path)
    for sample in SAMPLES.glob("*.yaml"):
        shutil.copy(sample, path)
    (path / "more.yaml").write_text(MORE)
    (path / "bad.yaml").write_text(
        "topologyManagerPolicy: loose\ncpuManagerPolicyOptions: {}\nnumalign: {queueDepth: 0}\n"
    )
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def node(directory: Path) -> Iterator[Path]:
    """The node of the demonstration, served; its Admission socket."""
    with served(directory, "config.yaml") as socket:
        yield socket


@contextmanager
def served(directory: Path, config: str) -> Iterator[Path]:
    """`numalign serve all` for as long as a `with` block runs; its Admission socket."""
    socket = directory / "run" / "admission.sock"
    command = [sys.executable, "-m", "numalign.cli", "serve", "all", "--config", config]
    places = ["--runtime-directory", "run", "--state-directory", "state"]
    process = subprocess.Popen(
        [*command, *places], cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        while not socket.exists():
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.05)
        yield socket
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0


def run(command: str, directory: Path, socket: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    monkeypatch.chdir(directory)
    monkeypatch.setenv("NUMALIGN_SOCKET", str(socket))
    command = command.replace("/etc/numalign/", "")
    return CliRunner().invoke(cli, shlex.split(command), prog_name="numalign")


@pytest.fixture(scope="module")
def outputs(directory: Path, node: Path) -> dict[str, Result]:
    """What every example came to, in an order in which each finds what it needs."""
    found = {}
    late = [e.command for e in EXAMPLES if e.runs_here]
    first = ["admit 01-database.yaml"]
    before = [f"admit {name}" for name in ("02-training.yaml", "03-web.yaml", "04-pipeline.yaml")]
    then = ["admit 05-analytics.yaml", "snapshot --to node.json"]
    last = ["release 01-database.yaml"]
    early = {*first, *then, *last}
    with pytest.MonkeyPatch.context() as monkeypatch:
        for command in (*first, *before, *then, *(c for c in late if c not in early), *last):
            found[command] = run(command, directory, node, monkeypatch)
    return found


def test_there_are_examples_with_and_without_outputs() -> None:
    shown = [example for example in EXAMPLES if example.runs_here and example.output.strip()]

    assert len(shown) >= 10
    assert {example.command.split()[0] for example in EXAMPLES if example.runs_here} == HERE


@pytest.mark.parametrize(
    "name", sorted({e.command.split()[0] for e in EXAMPLES if not e.runs_here} - HERE)
)
def test_the_other_commands_are_run_by_other_tests(name: str) -> None:
    tests = (path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__))

    assert any(f'"{name}"' in path.read_text(encoding="utf-8") for path in tests)


@pytest.mark.parametrize(
    "example", [e for e in EXAMPLES if e.runs_here], ids=lambda example: example.command
)
def test_a_documented_command_does_what_is_shown(
    outputs: dict[str, Result], directory: Path, example: Example
) -> None:
    result = outputs[example.command]

    expected = EXPECTED_CODES.get(example.command, 3 if "simulate" in example.command else 0)
    assert result.exit_code == expected, result.output
    if not example.output.strip():
        return
    got, shown = normal(result.output, directory), normal(example.output, directory)
    if example.command.startswith("history"):
        # How wide a column is depends on how long a decision took, and with it each line's end.
        got, shown = (sorted(" ".join(lines).split()) for lines in (got, shown))
    assert got == shown


PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
ANYWHERE = sorted(
    {
        (page.name, program, line.partition(" > ")[0].removesuffix("&").strip())
        for page in PAGES
        for program, line in re.findall(
            r"^(?:\$ |    )(numalign|numalign-agent) (.*?)(?:  +#.*)?$",
            page.read_text(encoding="utf-8"),
            re.MULTILINE,
        )
    }
)


def leaf_of(command: click.Command, words: list[str]) -> click.Command:
    """The sub-command that the words name."""
    if not isinstance(command, click.Group):
        return command
    context = click.Context(command)
    for index, word in enumerate(words):
        if word in command.list_commands(context):
            found = command.get_command(context, word)
            assert found is not None
            return leaf_of(found, words[index + 1 :])
    raise AssertionError(f"no sub-command in {words}")


@pytest.mark.parametrize(
    ("program", "line"),
    [pytest.param(program, line, id=f"{page} {line}") for page, program, line in ANYWHERE],
)
def test_every_documented_command_line_can_be_given(
    monkeypatch: pytest.MonkeyPatch, program: str, line: str
) -> None:
    """Without doing it: the sub-command is there and takes these options and arguments."""
    command: click.Command = cli if program == "numalign" else agent_cli
    words = shlex.split(line)
    monkeypatch.setattr(leaf_of(command, words), "callback", lambda **_: None)
    result = CliRunner().invoke(command, words, prog_name=program)

    assert result.exit_code == 0, result.output
