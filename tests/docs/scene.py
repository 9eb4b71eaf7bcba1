"""A reader at work: a directory, what was started there, and commands typed one after the other.

Commands of numalign that need nothing of a shell run in this process, which is quicker by far than
one of their own each; they speak to the same services over the same sockets. Everything else runs
in bash. Places that a page names are below the scene's own directory.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner
from tests.docs.pages import ROOT, Command, File

from numalign.cli.main import cli
from numalign_agent.cli.main import cli as agent_cli

DEMO = ROOT / "service" / "numalign" / "cli" / "demo"
SAMPLES = ROOT / "deploy" / "samples"
_SECONDS = 90
_SHELL = re.compile(r"[|><;$]|&&|^\.|^(cd|export|until|kill|source) ")


@dataclass(frozen=True, slots=True)
class Done:
    """What a command came to: exit code and what it wrote."""

    code: int
    output: str


class Scene:
    """Where the commands of one page are typed."""

    def __init__(self, places: Mapping[str, str], section: Mapping[str, Any]) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="nd-", dir="/tmp"))
        self._places = {
            "/etc/numalign/": "",
            "/run/numalign/": f"{self.directory}/run/",
            "/var/lib/kubelet": f"{self.directory}/kubelet",
            **{old: new.format(here=self.directory) for old, new in places.items()},
        }
        self._section = section
        self._running: list[subprocess.Popen[bytes]] = []
        self._variables: dict[str, str] = {}
        for name in ("config.yaml", "machine.yaml"):
            shutil.copy(DEMO / name, self.directory)
        self._configure(self.directory / "config.yaml")
        for sample in SAMPLES.glob("*.yaml"):
            shutil.copy(sample, self.directory)
        for name in ("device-plugins", "plugins_registry"):
            (self.directory / "kubelet" / name).mkdir(parents=True)
        for name in ("clients", "deploy", "protos"):
            (self.directory / name).symlink_to(ROOT / name)
        demo = self.directory / DEMO.relative_to(ROOT)
        shutil.copytree(DEMO, demo, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
        self._configure(demo / "config.yaml")

    def close(self) -> dict[str, str]:
        """End what still runs, the last one first, and take everything away.

        Gives what was written by each that did not end well, by its command.
        """
        for process in reversed(self._running):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        codes = [process.wait(_SECONDS) for process in self._running]
        logs = [self._log(number).read_text(encoding="utf-8") for number in range(len(codes))]
        shutil.rmtree(self.directory)
        return {
            str(process.args): log
            for process, code, log in zip(self._running, codes, logs, strict=True)
            if code not in {0, -signal.SIGTERM}
        }

    def _log(self, number: int) -> Path:
        return self.directory / f"started-{number}.log"

    def write(self, file: File) -> None:
        """Write a file as the page says; a configuration is made to fit the scene."""
        path = self.directory / file.name
        path.parent.mkdir(exist_ok=True)
        path.write_text(self._placed(file.text), encoding="utf-8")
        if file.name == "config.yaml":
            self._configure(path)

    def type(self, command: Command) -> Done:
        """Run a command to its end; one that stays is started, and waited for a moment."""
        line = self._placed(command.line)
        if command.stays:
            return self._start(line.removesuffix("&").strip())
        if line.startswith("export "):
            name, _, value = line.removeprefix("export ").partition("=")
            self._variables[name] = value
            return Done(0, "")
        if line == "kill %1":
            self._running[0].terminate()
            return Done(self._running[0].wait(_SECONDS), "")
        if _SHELL.search(line) or command.program not in {"numalign", "numalign-agent"}:
            return self._in_bash(line)
        return self._here(shlex.split(line))

    def _start(self, line: str) -> Done:
        words = shlex.split(self._in_full(line), comments=True)
        log = self._log(len(self._running))
        with log.open("wb") as out:
            process = subprocess.Popen(
                words, cwd=self.directory, env=self._environment(), stdout=out, stderr=out
            )
        self._running.append(process)
        if " serve " in line:
            sockets = "n/run" if "n/run" in line else "run"
            self._until_there(self.directory / sockets / "admission.sock", process, log)
        return Done(0, "")

    def _until_there(self, path: Path, process: subprocess.Popen[bytes], log: Path) -> None:
        """Wait for what a process makes, as long as it lives."""
        deadline = time.monotonic() + _SECONDS
        while not path.exists():
            assert process.poll() is None, log.read_text(encoding="utf-8")
            assert time.monotonic() < deadline, log.read_text(encoding="utf-8")
            time.sleep(0.05)

    def _here(self, words: list[str]) -> Done:
        program, *arguments = words
        command = cli if program == "numalign" else agent_cli
        before = Path.cwd()
        os.chdir(self.directory)
        try:
            result = CliRunner(env=self._environment()).invoke(
                command, arguments, prog_name=program
            )
        finally:
            os.chdir(before)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Done(result.exit_code, result.output)

    def _in_bash(self, line: str) -> Done:
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.directory,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        return Done(done.returncode, done.stdout + done.stderr)

    def _environment(self) -> dict[str, str]:
        """That of the tests, with programs and places of the scene."""
        kept = {name: value for name, value in os.environ.items() if "NUMALIGN" not in name}
        places = {
            "HOME": str(self.directory),
            "XDG_RUNTIME_DIR": str(self.directory),
            "XDG_STATE_HOME": str(self.directory),
            "NUMALIGN_SOCKET": f"{self.directory}/run/admission.sock",
            "NUMALIGN_CONFIG": "config.yaml",
            "PYTHONPATH": str(ROOT / "clients"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        found = {**kept, **places, **self._variables}
        if "NUMALIGN_CONFIG" in self._variables:
            del found["NUMALIGN_SOCKET"]
        return found

    def _placed(self, text: str) -> str:
        for old, new in self._places.items():
            text = text.replace(old, new)
        return text.replace("$PWD", str(self.directory))

    def _in_full(self, line: str) -> str:
        """A line of numalign that is started, with what keeps it inside of the scene."""
        program, _, rest = line.partition(" ")
        return f"{Path(sys.executable).parent}/{program} {rest}"

    def _configure(self, path: Path) -> None:
        """Add to a configuration what keeps it inside of the scene."""
        document = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        section = document.setdefault("numalign", {})
        if "machine" not in section:
            section["machine"] = {"file": "machine.yaml"}
        for key, value in self._section.items():
            section.pop(key, None)
            if value is not None:
                section[key] = _filled(value, str(self.directory))
        section["secondOwner"] = "tolerate"
        section["runtimeDirectory"] = str(self.directory / "run")
        section["stateDirectory"] = str(self.directory / "state")
        section.setdefault("log", {})["level"] = "warning"
        path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


def _filled(value: Any, here: str) -> Any:
    """A value with the directory in the place of `{here}`."""
    if isinstance(value, str):
        return value.replace("{here}", here)
    if isinstance(value, dict):
        return {key: _filled(inner, here) for key, inner in value.items()}
    return [_filled(inner, here) for inner in value] if isinstance(value, list) else value
