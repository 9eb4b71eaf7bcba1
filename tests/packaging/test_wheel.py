"""The wheel in virtual environments: the client with grpcio and protobuf alone, and the rest."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_BASE = ("grpcio", "protobuf", "typing_extensions")
"""The base dependencies, and what grpcio needs."""

_CLIENT = """
import json, sys
from pathlib import Path
from numalign_client import AsyncClient, Client
loaded = list({name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names)
pod = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "app", "resources": {
    "limits": {"cpu": "2", "memory": "64Mi"}}}]}}
try:
    yaml = ""
    Client("/nowhere").admit("kind: Pod")
except ImportError as error:
    yaml = str(error)
with Client(sys.argv[1], timeout=60) as client:
    decision = client.admit(pod)
    client.release(decision.pod_uid)
try:
    import numalign_client.sdk
    sdk = ""
except ImportError as error:
    sdk = str(error)
print(json.dumps({"loaded": loaded, "decision": str(decision), "cpus": decision.allocations[0].cpus,
                  "yaml": yaml, "sdk": sdk}))
"""

pytestmark = pytest.mark.processes


class Environment:
    """A virtual environment with the wheel installed."""

    def __init__(self, directory: Path, wheel: Path) -> None:
        venv.create(directory, symlinks=True)
        self.bin = directory / "bin"
        (self.site,) = directory.glob("lib/python*/site-packages")
        _run(
            sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "install",
            "--quiet", "--no-index", "--no-deps", "--no-compile", str(wheel),
        )  # fmt: skip

    def borrow(self, name: str) -> None:
        """Have an installed distribution of this environment in that one, too."""
        found = distribution(name)
        parts = [file.parts for file in found.files or () if file.parts[0] != ".."]
        for top in {Path(*part[: 2 if part[0] == "google" else 1]) for part in parts}:
            if top.name == "__pycache__":
                continue
            link = self.site / top
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(Path(str(found.locate_file(""))) / top)

    def borrow_everything(self) -> None:
        """See all that is installed here, except for numalign."""
        others = Path(str(distribution("grpcio").locate_file("")))
        (self.site / "others.pth").write_text(f"{others}\n", encoding="utf-8")


def _run(*command: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", env=_env(), check=False)
    assert done.returncode == code, done.stderr
    return done


def _env() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL_", "PYTHON", "NUMALIGN_"))
    }


@pytest.fixture(scope="module")
def wheel() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="na-") as name:
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", name],
            cwd=_ROOT,
            check=True,
            capture_output=True,
        )
        (found,) = Path(name).glob("*.whl")
        yield found


@pytest.fixture(scope="module")
def bare(wheel: Path) -> Environment:
    """What `pip install numalign` gives."""
    environment = Environment(wheel.parent / "bare", wheel)
    for name in _BASE:
        environment.borrow(name)
    return environment


@pytest.fixture(scope="module")
def full(wheel: Path) -> Environment:
    """The wheel with every extra."""
    environment = Environment(wheel.parent / "full", wheel)
    environment.borrow_everything()
    return environment


@pytest.fixture
def socket(full: Environment) -> Iterator[Path]:
    """The services, run from the wheel on a made-up machine."""
    with tempfile.TemporaryDirectory(prefix="na-") as name:
        directory = Path(name)
        for file in ("config.yaml", "machine.yaml"):
            text = files("numalign.cli.demo").joinpath(file).read_text(encoding="utf-8")
            (directory / file).write_text(text, encoding="utf-8")
        process = subprocess.Popen(
            [
                *(str(full.bin / "numalign"), "serve", "all"),
                *("--config", str(directory / "config.yaml")),
                *("--runtime-directory", str(directory / "run")),
                *("--state-directory", str(directory / "state")),
            ],
            env=_env(),
            cwd="/",
        )
        yield directory / "run" / "admission.sock"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_the_client_works_with_grpcio_and_protobuf_alone(bare: Environment, socket: Path) -> None:
    done = _run(str(bare.bin / "python"), "-c", _CLIENT, str(socket))
    said = json.loads(done.stdout)

    assert said["decision"] == "admitted"
    assert said["cpus"]
    assert {name for name in said["loaded"] if "cython" not in name} == {
        "__main__",
        "google",
        "grpc",
        "numalign",
        "numalign_client",
        "typing_extensions",
    }
    assert said["yaml"] == "a pod as YAML needs the package PyYAML: pip install 'numalign[yaml]'"
    assert said["sdk"].endswith("grpcio-health-checking: pip install 'numalign[sdk]'")


@pytest.mark.parametrize(
    ("command", "extra"), [("numalign", "service"), ("numalign-agent", "agent")]
)
def test_a_command_says_which_extra_is_missing(bare: Environment, command: str, extra: str) -> None:
    done = _run(str(bare.bin / command), "--help", code=1)

    assert done.stderr == (
        f"{command}: the package that click comes with is not installed: "
        f"pip install 'numalign[{extra}]'\n"
    )


@pytest.mark.parametrize("command", ["numalign", "numalign-agent"])
def test_a_command_works_with_its_extra(full: Environment, command: str) -> None:
    done = _run(str(full.bin / command), "--help")
    version = _run(str(full.bin / command), "--version")

    assert f"Usage: {command}" in done.stdout
    assert version.stdout.split() == [command, distribution("numalign").version]


def test_the_wheel_has_what_is_no_code(full: Environment) -> None:
    for name in ("numalign/py.typed", "numalign_client/py.typed", "numalign_agent/py.typed"):
        assert (full.site / name).exists()
    assert (full.site / "numalign/cli/demo/config.yaml").exists()
    assert not list(full.site.glob("tests"))
