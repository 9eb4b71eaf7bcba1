"""kubectl: the user's own way into the cluster, with whatever it signs in by.

Separate from what is asked through it: this one only runs it, and says in plain words why it
failed.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Mapping, Sequence
from typing import IO, Any
from urllib.parse import quote, urlencode

from numalign.cli.remote.failures import is_not_found, plain_failure
from numalign.cli.remote.link import Link, kill
from numalign.cli.remote.pod import SELECTOR, RemotePod, pod_of_node
from numalign.cli.remote.target import RemoteNode
from numalign.errors import NotFound, Unavailable


class Kubectl:
    """kubectl for one cluster; no call takes longer than `seconds`."""

    def __init__(self, context: str, seconds: float) -> None:
        """Raises Unavailable where there is no kubectl."""
        program = shutil.which("kubectl")
        if program is None:
            raise Unavailable(
                "--node reaches nodes by kubectl, and there is none in PATH: install it, or run "
                "`numalign snapshot` on the node and take its file by --snapshot"
            )
        self._program = program
        self._shared = ("--context", context) if context else ()
        self._seconds = seconds

    async def pod_on(self, remote: RemoteNode) -> RemotePod:
        """The numalign pod of a node. Raises NotFound or Unavailable saying what is missing."""
        query = urlencode(
            {"labelSelector": SELECTOR, "fieldSelector": f"spec.nodeName={remote.node}"}
        )
        pods = await self._get(f"/api/v1/namespaces/{quote(remote.namespace)}/pods?{query}")
        found = pod_of_node(pods["items"], remote.node, remote.namespace)
        if found is None:
            await self._check_node(remote)
            raise NotFound(
                f"node {remote.node}: no numalign pod runs there: none with label {SELECTOR} in "
                f"namespace {remote.namespace} (--namespace names another one)"
            )
        return found

    async def link(self, pod: RemotePod, command: Sequence[str]) -> Link:
        """Start a command in the pod that is a connection. Raises OSError."""
        return await Link.start(self._in_pod(pod, command))

    async def run(self, pod: RemotePod, command: Sequence[str], to: IO[bytes]) -> tuple[int, str]:
        """Run a command in the pod, its output going to a file: its exit code, and its errors."""
        process = await asyncio.create_subprocess_exec(
            *self._in_pod(pod, command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=to,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            _, errors = await process.communicate()
        finally:
            kill(process)
            await process.wait()
        return process.returncode or 0, errors.decode(errors="replace")

    def _in_pod(self, pod: RemotePod, command: Sequence[str]) -> list[str]:
        return [
            self._program,
            *self._shared,
            *("exec", "--stdin", "--namespace", pod.namespace, "--container", pod.container),
            pod.name,
            "--",
            *command,
        ]

    async def _check_node(self, remote: RemoteNode) -> None:
        """Raises NotFound for a node that there is not; who may not ask gets no answer."""
        try:
            await self._get(f"/api/v1/nodes/{quote(remote.node)}")
        except NotFound as error:
            raise NotFound(
                f"node {remote.node} does not exist: `kubectl get nodes` shows those there are"
            ) from error
        except Unavailable:
            return  # the pods could be listed, so what is missing is no more than this right

    async def _get(self, path: str) -> Mapping[str, Any]:
        process = await asyncio.create_subprocess_exec(
            self._program,
            *self._shared,
            *("get", "--raw", path, f"--request-timeout={self._seconds:g}s"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(self._seconds + 1):
                out, err = await process.communicate()
        except TimeoutError as error:
            raise Unavailable(
                "the API server cannot be reached: no answer in time; give more with --timeout"
            ) from error
        finally:
            kill(process)
            await process.wait()
        said = err.decode(errors="replace")
        if process.returncode != 0:
            if is_not_found(said):
                raise NotFound(plain_failure(said))
            raise Unavailable(plain_failure(said))
        try:
            answer: Mapping[str, Any] = json.loads(out)
        except ValueError as error:
            raise Unavailable(f"the API server's answer is no JSON: {error}") from error
        return answer
