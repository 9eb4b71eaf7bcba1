"""Commands about another node of the cluster: real services, real kubectl, a fake API server."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.e2e.kubectl import kubectl
from tests.integration.fake_api.execution import Execution
from tests.integration.fake_api.server import FakeApiServer, fake_api_server
from tests.integration.served_node import ServedNode, container, pod

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(400)]

NAMESPACE = "numalign-system"
NODE = "node-1"
_PROGRAM = (sys.executable, "-m", "numalign.cli")
_PATIENT = ("--timeout", "150")
"""Each connection starts a process here and one there, on a machine that may be busy."""
_POD = """\
apiVersion: v1
kind: Pod
metadata: {name: big}
spec:
  containers:
  - name: c
    resources:
      requests: {cpu: "2", memory: 1Gi}
      limits: {cpu: "2", memory: 1Gi}
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command came to."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Cluster:
    """A workstation with a kubeconfig, and one node that has numalign."""

    api: FakeApiServer
    execution: Execution
    directory: Path
    config: Path

    def environment(self, **variables: str) -> dict[str, str]:
        """What commands find in their environment there."""
        return {
            "PATH": f"{kubectl().parent}:{os.environ['PATH']}",
            "HOME": str(self.directory),
            "KUBECONFIG": str(self.directory / "kubeconfig"),
            "COLUMNS": "100",
            **variables,
        }

    async def run(self, *command: str, **variables: str) -> Ran:
        """Run a command as on the workstation, where no services are."""
        process = await asyncio.create_subprocess_exec(
            *_PROGRAM,
            *command,
            *_PATIENT,
            env=self.environment(**variables),
            cwd=self.directory,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        return Ran(process.returncode or 0, out.decode(), err.decode())


@asynccontextmanager
async def _cluster(directory: Path) -> AsyncIterator[Cluster]:
    node = ServedNode(directory)
    config = directory / "config.yaml"
    node.start("all")
    try:
        for number in range(3):
            await asyncio.to_thread(
                node.admit,
                pod(f"p{number}", {"containers": [container("c", cpu="2", memory="1Gi")]}),
            )
        execution = Execution({"numalign": _PROGRAM})
        async with fake_api_server(execution) as api:
            api.kubeconfig(directory / "kubeconfig")
            api.store.create("nodes", "", {"metadata": {"name": NODE}})
            api.store.create("nodes", "", {"metadata": {"name": "bare"}})
            api.store.create("pods", NAMESPACE, numalign_pod(config))
            yield Cluster(api, execution, directory, config)
    finally:
        node.stop()


def numalign_pod(config: Path, **status: Any) -> dict[str, Any]:
    """A pod of the DaemonSet, as far as it matters."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "numalign-x7k2p",
            "labels": {"app.kubernetes.io/name": "numalign"},
            "annotations": {"kubectl.kubernetes.io/default-container": "services"},
        },
        "spec": {
            "nodeName": NODE,
            "containers": [
                {"name": "nri", "command": ["numalign-agent"], "args": ["nri"]},
                {"name": "services", "args": ["serve", "all", "--config", str(config)]},
            ],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        | status,
    }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    async with _cluster(tmp_path_factory.mktemp("n")) as made:
        yield made


async def test_would_pods_fit_there(cluster: Cluster) -> None:
    (cluster.directory / "pod.yaml").write_text(_POD)

    ran = await cluster.run("simulate", "--node", NODE, "pod.yaml")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0] == "default/big  admitted"
    assert "1 of 1 would be admitted; nothing was kept" in ran.out
    assert {name for name, _ in cluster.execution.started} == {"services"}


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("status", "default/p2"),
        ("status --resources", "shared CPUs"),
        ("top --once", "default/p1"),
        ("history", "default/p0"),
        ("explain p1", "Admitted by policy best-effort"),
        ("providers", "memory"),
        ("report -o -", "default/p2"),
        ("snapshot", '"node": "node-1"'),
    ],
)
async def test_what_is_seen_there(cluster: Cluster, command: str, shown: str) -> None:
    ran = await cluster.run(*command.split(), "--node", NODE)

    assert (ran.code, ran.err) == (0, "")
    assert shown in ran.out


async def test_status_names_the_sockets_of_the_node(cluster: Cluster) -> None:
    ran = await cluster.run("-o", "json", "status", "--node", NODE)

    (topology,) = (s for s in json.loads(ran.out)["services"] if s["service"] == "topology")
    assert topology["socket"] == str(cluster.directory / "run" / "topology.sock")


async def test_top_goes_on_until_it_is_interrupted(cluster: Cluster) -> None:
    """In a terminal; afterwards nothing of what it started is left."""
    terminal, other_end = os.openpty()
    process = await asyncio.create_subprocess_exec(
        *_PROGRAM,
        *("top", "--node", NODE, "--interval", "0.1", *_PATIENT),
        env=cluster.environment(TERM="xterm", COLUMNS="120", LINES="60"),
        stdin=other_end,
        stdout=other_end,
        stderr=other_end,
        start_new_session=True,
    )
    os.close(other_end)
    shown = await asyncio.to_thread(_read_until, terminal, b"default/p1", 3)
    process.send_signal(signal.SIGINT)
    left = await asyncio.to_thread(_read_until, terminal, b"", 0)

    assert await process.wait() == 0, shown + left
    assert b"Traceback" not in shown + left
    os.close(terminal)
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def _read_until(terminal: int, text: bytes, times: int) -> bytes:
    """What a terminal shows, up to the text so many times; 0: up to its end."""
    shown = b""
    while not times or shown.count(text) < times:
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:
            return shown  # nobody has the other end any more
        if not piece:
            return shown
        shown += piece
    return shown


async def test_a_bundle_is_gathered_there(cluster: Cluster) -> None:
    ran = await cluster.run("gather", "--node", NODE, "--to", "bundle.tar.gz", "--log", "gone.log")

    bundle = cluster.directory / "bundle.tar.gz"
    assert ran.code == 1
    assert ran.err == "numalign: log gone.log: No such file or directory\n"
    assert ran.out == f"bundle.tar.gz: {bundle.stat().st_size} bytes\n"
    assert bundle.stat().st_mode & 0o777 == 0o600
    with tarfile.open(bundle) as archive:
        names = archive.getnames()
    assert "numalign/snapshot.json" in names
    assert any(name.startswith("numalign/machine/") for name in names)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        pytest.param(
            ("--node", "ghost"),
            "node ghost does not exist: `kubectl get nodes` shows those there are",
            id="no such node",
        ),
        pytest.param(
            ("--node", "bare"),
            "node bare: no numalign pod runs there: none with label "
            "app.kubernetes.io/name=numalign in namespace numalign-system "
            "(--namespace names another one)",
            id="no pod of numalign",
        ),
        pytest.param(
            ("--node", NODE, "--context", "prod"),
            'context "prod" does not exist: `kubectl config get-contexts` shows those there are',
            id="no such context",
        ),
    ],
)
async def test_what_is_not_there(cluster: Cluster, command: tuple[str, ...], said: str) -> None:
    ran = await cluster.run("history", *command)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err == f"numalign: {said}\n"


async def test_no_kubeconfig(cluster: Cluster) -> None:
    ran = await cluster.run("history", "--node", NODE, KUBECONFIG=str(cluster.directory / "gone"))

    assert ran.code == 1
    assert ran.err.startswith("numalign: no kubeconfig: kubectl has no cluster to speak to; ")


async def test_no_kubectl(cluster: Cluster) -> None:
    ran = await cluster.run("top", "--node", NODE, PATH="/nonexistent")

    assert ran.code == 1
    assert ran.err.startswith(
        "numalign: --node reaches nodes by kubectl, and there is none in PATH"
    )


async def test_exec_is_forbidden(cluster: Cluster) -> None:
    cluster.execution.forbidden = True
    try:
        ran = await cluster.run("status", "--node", NODE)
    finally:
        cluster.execution.forbidden = False

    assert (ran.code, ran.out) == (1, "")
    assert 'cannot create resource "pods/exec"' in ran.err
    assert ran.err.endswith("(--node needs: get and list pods, create pods/exec)\n")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "the API server does not accept the credentials of the kubeconfig: "),
        (403, "not allowed: "),
        (500, "Error from server"),
    ],
)
async def test_the_api_server_refuses(cluster: Cluster, status: int, said: str) -> None:
    cluster.api.faults.fail = [status] * 20
    try:
        ran = await cluster.run("history", "--node", NODE)
    finally:
        cluster.api.faults.fail = []

    assert ran.code == 1
    assert ran.err.startswith(f"numalign: {said}")
    assert ran.err.count("\n") == 1


async def test_the_api_server_is_away(cluster: Cluster) -> None:
    away = cluster.directory / "away"
    away.write_text(
        (cluster.directory / "kubeconfig")
        .read_text()
        .replace(cluster.api.url, "http://127.0.0.1:1")
    )

    ran = await cluster.run("history", "--node", NODE, KUBECONFIG=str(away))

    assert ran.code == 1
    assert ran.err.startswith("numalign: the API server cannot be reached: ")
    assert "127.0.0.1:1" in ran.err


async def test_a_pod_that_does_not_run(cluster: Cluster) -> None:
    waiting = numalign_pod(cluster.config, phase="Pending", reason="ImagePullBackOff")
    waiting["spec"]["nodeName"] = "new"
    waiting["metadata"]["name"] = "numalign-new"
    cluster.api.store.create("pods", NAMESPACE, waiting)

    ran = await cluster.run("history", "--node", "new")

    assert ran.code == 1
    assert ran.err == (
        "numalign: node new: pod numalign-system/numalign-new does not run (ImagePullBackOff): "
        "`kubectl describe pod -n numalign-system numalign-new` says more\n"
    )


@pytest.mark.parametrize(
    ("program", "said"),
    [
        pytest.param(
            None, "numalign cannot be run in the container: ", id="no numalign in the container"
        ),
        pytest.param(
            ("sh", "-c", "echo 'Error: No such command '\"'relay'\"'.' >&2; exit 2"),
            "numalign on the node is too old for --node: it has no command relay",
            id="an older numalign",
        ),
        pytest.param(
            ("sh", "-c", "echo hello"),
            'the pod answered "hello" in place of numalign relay',
            id="something else",
        ),
    ],
)
async def test_another_program_there(
    cluster: Cluster, program: tuple[str, ...] | None, said: str
) -> None:
    programs = cluster.execution.programs
    cluster.execution.programs = {} if program is None else {"numalign": program}
    try:
        ran = await cluster.run("history", "--node", NODE)
    finally:
        cluster.execution.programs = programs

    assert ran.code == 1
    assert said in ran.err
    assert ran.err.count("\n") == 1
