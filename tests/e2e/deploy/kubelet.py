"""Runs the pod of a manifest in a container runtime, as a kubelet does: its order, its probes."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from grpc import StatusCode, aio
from tests.deploy.manifests import Document
from tests.e2e.cri import EXITED, RUNNING, Cri, cri
from tests.e2e.deploy.manifest import (
    CONTAINER_FIELDS,
    NAMESPACES,
    POD_FIELDS,
    container_config,
    only,
    seccomp,
)

_PERIOD, _TIMEOUT, _FAILURES = 10, 1, 3
"""Of probes that do not say so themselves."""

_READINESS_TRIES = 20
"""A kubelet never gives this one up; a test does."""

_PROBE_FIELDS = {
    *("exec", "tcpSocket", "httpGet", "timeoutSeconds", "periodSeconds", "failureThreshold"),
}


class Kubelet:
    """Of one pod; `address` is the pod's, once it has a sandbox."""

    def __init__(
        self, runtime: Cri, template: Document, pod: Document, *, logs: Path, cgroup: str
    ) -> None:
        """`pod` is the metadata that the API server has."""
        self.runtime = runtime
        self.uid = pod["uid"]
        self.spec = only(template["spec"], POD_FIELDS)
        self.containers: dict[str, str] = {}
        self._attempts: dict[str, int] = {}
        self._logs = logs
        labels = {**template["metadata"]["labels"], "io.kubernetes.pod.uid": self.uid}
        self._config = cri.PodSandboxConfig(
            metadata={"name": pod["name"], "uid": self.uid, "namespace": pod["namespace"]},
            hostname=pod["name"],
            log_directory=str(logs),
            labels=labels,
            annotations={
                **template["metadata"].get("annotations", {}),
                "kubernetes.io/config.source": "api",
            },
            linux={
                "cgroup_parent": f"{cgroup}/kubepods/burstable/pod{self.uid}",
                "security_context": {
                    "namespace_options": NAMESPACES,
                    "seccomp": seccomp(self.spec["securityContext"]),
                },
            },
        )
        self._sandbox = ""

    async def start_sandbox(self) -> int:
        """Begin; the process that holds the pod's network."""
        self._sandbox = await self.runtime.run_sandbox(self._config)
        return await self.runtime.sandbox_pid(self._sandbox)

    async def start_containers(
        self, environment: Mapping[str, str], mounted: Mapping[str, str], address: str
    ) -> None:
        """Those that prepare one after the other, then the others; all startup probes passed."""
        self._environment, self._mounted, self.address = environment, mounted, address
        for container in self.spec["initContainers"]:
            only(container, CONTAINER_FIELDS - {"startupProbe", "livenessProbe", "readinessProbe"})
            await self._run(container)
            await self._until_exited(container["name"])
        for container in self.spec["containers"]:
            await self._run(container)
        names = [container["name"] for container in self.spec["containers"]]
        await asyncio.gather(*(self.until_passed(name, "startupProbe") for name in names))

    async def restart(self, name: str) -> None:
        """Run a container that ended once more."""
        await self._run(self.written[name])
        await self.until_passed(name, "startupProbe")

    @property
    def written(self) -> dict[str, Document]:
        """The containers of the manifest by name, without those that only prepare."""
        return {each["name"]: each for each in self.spec["containers"]}

    async def run_inside(self, name: str, *command: str, seconds: int = 60) -> str:
        """What a command prints that is run in a container; it must end well."""
        answer = await self.runtime.run_for_code(self.containers[name], command, seconds)
        assert answer.exit_code == 0, (command, answer.stdout, answer.stderr)
        return str(answer.stdout.decode())

    async def until_passed(self, name: str, kind: str) -> None:
        """Ask by a probe of a container as often, and as long, as a kubelet does."""
        probe = self.written[name][kind]
        tries = probe.get("failureThreshold", _FAILURES)
        for _ in range(_READINESS_TRIES if kind == "readinessProbe" else tries):
            await self._assert_runs(name)
            said = await self.probe(name, probe)
            if said is None:
                return
            await asyncio.sleep(probe.get("periodSeconds", _PERIOD))
        raise AssertionError(f"{kind} of {name} does not pass: {said}\n{self.told()}")

    async def probe(self, name: str, probe: Document) -> str | None:
        """Why a probe fails, None when it does not."""
        only(probe, _PROBE_FIELDS)
        seconds = probe.get("timeoutSeconds", _TIMEOUT)
        if "exec" in probe:
            command = only(probe["exec"], {"command"})["command"]
            return await self._execute(name, command, seconds)
        ask = self._reach if "tcpSocket" in probe else self._get
        try:
            return await asyncio.to_thread(ask, probe, seconds)
        except OSError as error:
            return str(error)

    async def _execute(self, name: str, command: Sequence[str], seconds: int) -> str | None:
        try:
            answer = await self.runtime.run_for_code(self.containers[name], command, seconds)
        except aio.AioRpcError as error:
            if error.code() is not StatusCode.DEADLINE_EXCEEDED:
                raise
            return str(error.details())
        return None if answer.exit_code == 0 else answer.stderr.decode() or "failed"

    def _reach(self, probe: Document, seconds: int) -> None:
        connection = http.client.HTTPConnection(
            self.address, probe["tcpSocket"]["port"], timeout=seconds
        )
        connection.connect()
        connection.close()

    def _get(self, probe: Document, seconds: int) -> str | None:
        asked = only(probe["httpGet"], {"port", "path"})
        connection = http.client.HTTPConnection(self.address, asked["port"], timeout=seconds)
        try:
            connection.request("GET", asked["path"])
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        return None if 200 <= answer.status < 400 else f"{answer.status} {text}"

    async def exit_codes(self, grace: int) -> dict[str, int]:
        """End every container within so many seconds; what each of them ended with."""
        await asyncio.gather(
            *(self.runtime.stop(container, grace) for container in self.containers.values())
        )
        statuses = {
            name: await self.runtime.status(container)
            for name, container in self.containers.items()
        }
        return {name: status.exit_code for name, status in statuses.items()}

    def told(self) -> str:
        """The end of what each container said."""
        return "\n".join(
            f"--- {path.name}\n{path.read_text(errors='replace')[-8000:]}"
            for path in sorted(self._logs.glob("*.log"))
        )

    async def _run(self, container: Document) -> None:
        name = container["name"]
        attempt = self._attempts[name] = self._attempts.get(name, -1) + 1
        config = container_config(self.spec, container, self._environment, self._mounted, attempt)
        made = await self.runtime.create(self._sandbox, config, self._config)
        await self.runtime.start(made)
        self.containers[name] = made

    async def _until_exited(self, name: str) -> None:
        async with asyncio.timeout(60):
            while (status := await self._status(name)).state != EXITED:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert status.exit_code == 0, self.told()

    async def _assert_runs(self, name: str) -> None:
        status = await self._status(name)
        assert status.state == RUNNING, f"{name} ended with {status.exit_code}\n{self.told()}"

    async def _status(self, name: str) -> Any:
        return await self.runtime.status(self.containers[name])
