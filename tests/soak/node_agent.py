"""The node agent of a soak: a process of its own that runs pods of manifests, dies and comes back.

Separate from the callers, which speak to Admission themselves: what counts here is what runs.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from tests.integration.plugin_world import end

from numalign.errors import StateError
from numalign.v1 import admission_pb2 as ad
from numalign_agent.journal.journal import reading
from numalign_agent.journal.rows import PodRow
from numalign_agent.runners.port import RunnerFailed
from numalign_agent.runners.process.directory import directories_in

OWNER = "agent"
NODE = "soak"
MOST_PODS = 4
PAUSE_SECONDS = 0.1
IN_HAND_SECONDS = 0.3
SETTLE_EVERY = 3
SETTLED_SECONDS = 60.0
"""The agent asks again every few seconds where Admission was away."""


@dataclass
class NodeAgent:
    """Use `begin`, `run` while there is load, `settle` and `check` when there is none."""

    directory: Path
    choose: random.Random
    _names: set[str] = field(default_factory=set)
    _number: int = 0
    _rounds: int = 0
    _settled: bool = False
    _faults: list[str] = field(default_factory=list)

    def begin(self) -> None:
        """Write its configuration, and start it."""
        self._manifests.mkdir()
        (self.directory / "agent.yaml").write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "kubelet.config.k8s.io/v1beta1",
                    "kind": "KubeletConfiguration",
                    "staticPodPath": str(self._manifests),
                    "fileCheckFrequency": "1s",
                    "numalign": {
                        "runtimeDirectory": str(self.directory / "run"),
                        "log": {"level": "warning"},
                        "agent": {
                            "nodeName": NODE,
                            "owner": OWNER,
                            "stateDirectory": str(self._state),
                            "enforce": "none",
                            "reconcileFrequency": "300ms",
                        },
                    },
                }
            )
        )
        self.start()

    def start(self) -> None:
        """Start it."""
        with (self.directory / "agent.log").open("ab") as log:
            self._process = subprocess.Popen(
                (
                    Path(sys.executable).with_name("numalign-agent"),
                    *("run", "--config", self.directory / "agent.yaml"),
                ),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """Kill it; its containers go on."""
        end(self._process, signal.SIGKILL)

    def close(self) -> None:
        """End it, and what it runs."""
        end(self._process, signal.SIGKILL)
        for pid in self._running().values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    async def run(self, stop: asyncio.Event) -> None:
        """Let manifests come and go until told to stop."""
        while not stop.is_set():
            self._change()
            await asyncio.sleep(PAUSE_SECONDS)

    async def settle(self) -> None:
        """Wait until everything is as the manifests say; at some rounds, and once none are left.

        It takes seconds: what failed while a service was away is tried again ever less often.
        """
        self._rounds += 1
        self._settled = self._rounds % SETTLE_EVERY == 0 or not self._names
        until = time.monotonic() + SETTLED_SECONDS
        while self._settled and (wrong := self._wrong()):
            if time.monotonic() > until:
                self._faults = wrong
                return
            await asyncio.sleep(0.05)

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Have it stand still for the time of a `with` block, so that nothing changes meanwhile."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            # What it has sent has arrived by then.
            await asyncio.sleep(IN_HAND_SECONDS)
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def check(self, listing: ad.ListAdmissionsResponse) -> list[str]:
        """What is wrong; settled, and nobody calling."""
        if not self._settled:
            return []
        rows = self._rows()
        held = {name(r.name) for r in listing.admissions if r.owner == OWNER}
        admitted = {pod for pod, row in rows.items() if row.verdict == "admitted"}
        faults = list(self._faults)
        if held != admitted:
            faults.append(f"agent: {held} are admitted, and {admitted} were told so")
        return faults

    def remove_all(self) -> None:
        """Take every manifest away."""
        for pod in tuple(self._names):
            self._remove(pod)

    @property
    def _manifests(self) -> Path:
        return self.directory / "manifests"

    @property
    def _state(self) -> Path:
        return self.directory / "agent"

    def _change(self) -> None:
        if len(self._names) == MOST_PODS or (self._names and self.choose.random() < 0.4):
            self._remove(self.choose.choice(sorted(self._names)))
            return
        self._number += 1
        pod = f"m{self._number}"
        amounts = {"cpu": str(self.choose.choice((1, 1, 2))), "memory": "64Mi"}
        draft = self.directory / "manifest.draft"
        draft.write_text(json.dumps(_manifest(pod, amounts)))
        draft.rename(self._manifests / f"{pod}.json")
        self._names.add(pod)

    def _remove(self, pod: str) -> None:
        (self._manifests / f"{pod}.json").unlink()
        self._names.remove(pod)

    def _wrong(self) -> list[str]:
        rows, running = self._rows(), self._running()
        wrong = []
        if rows.keys() != self._names:
            wrong.append(f"agent: it knows {set(rows)}, and there are {self._names}")
        admitted = {pod for pod, row in rows.items() if row.verdict == "admitted"}
        if running.keys() != admitted:
            wrong.append(f"agent: {set(running)} run, and {admitted} are admitted")
        undecided = {pod for pod, row in rows.items() if not row.verdict}
        if undecided:
            wrong.append(f"agent: {undecided} are not decided")
        return wrong

    def _rows(self) -> dict[str, PodRow]:
        try:
            with reading(self._state) as journal:
                return {name(row.name): row for row in journal.pods()}
        except StateError:
            # It was killed before it had made one.
            return {}

    def _running(self) -> dict[str, int]:
        """The pids of the containers that run, by pod."""
        found: dict[str, int] = {}
        containers = self._state / "containers"
        for directory in directories_in(containers) if containers.is_dir() else ():
            try:
                running = directory.running()
                if running is not None and directory.exited() is None:
                    found[name(directory.made().pod_name)] = running.pid
            except RunnerFailed:
                # Looked at while the agent removed it.
                if directory.path.exists():
                    raise
        return found


def name(pod: str) -> str:
    """What a static pod is called in its manifest."""
    return pod.removesuffix(f"-{NODE}")


def _manifest(pod: str, amounts: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": "c",
                    "image": "none",
                    "command": ["sleep", "100000"],
                    "resources": {"limits": amounts},
                }
            ],
        },
    }
