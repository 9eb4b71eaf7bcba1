"""Asking one container once: by a command, over HTTP, or by connecting.

A container is a process of this node, so its address is the node's own.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import ssl
from collections.abc import Mapping
from typing import Any

from numalign_agent.containers.environment import BASE_ENVIRONMENT, CannotProvide
from numalign_agent.containers.spec import ContainerSpec

LOCAL = "127.0.0.1"


def check(spec: ContainerSpec, probe: Mapping[str, Any]) -> None:
    """Raise CannotProvide for a probe that cannot be asked here."""
    if not any(probe.get(kind) for kind in ("exec", "httpGet", "tcpSocket")):
        raise CannotProvide(
            f"container {spec.name}: probe {', '.join(probe) or '{}'}: "
            "only exec, httpGet and tcpSocket are supported"
        )
    for kind in ("httpGet", "tcpSocket"):
        if probe.get(kind):
            port_of(spec, probe[kind])


async def ask(spec: ContainerSpec, probe: Mapping[str, Any], timeout_seconds: float) -> bool:
    """Whether the container says yes in time. The probe was checked before."""
    try:
        async with asyncio.timeout(timeout_seconds):
            if probe.get("exec"):
                return await _execute(tuple(probe["exec"].get("command") or ()))
            if probe.get("httpGet"):
                return await _get(spec, probe["httpGet"])
            return await _connect(spec, probe["tcpSocket"])
    except (TimeoutError, OSError, asyncio.IncompleteReadError, ValueError):
        return False


def port_of(spec: ContainerSpec, target: Mapping[str, Any]) -> int:
    """The port of a probe, which may be named. Raises CannotProvide for a name unknown."""
    port = target.get("port")
    if isinstance(port, int):
        return port
    if isinstance(port, str) and port.isdecimal():
        return int(port)
    for listed in spec.document.get("ports") or ():
        if listed.get("name") == port:
            return int(listed["containerPort"])
    raise CannotProvide(f'container {spec.name}: probe port "{port}" is not a port of it')


async def _execute(command: tuple[str, ...]) -> bool:
    if not command:
        return False
    process = await asyncio.create_subprocess_exec(
        *command,
        env=dict(BASE_ENVIRONMENT),
        cwd="/",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        return await process.wait() == 0
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            await process.wait()


async def _connect(spec: ContainerSpec, target: Mapping[str, Any]) -> bool:
    _, writer = await asyncio.open_connection(target.get("host") or LOCAL, port_of(spec, target))
    writer.close()
    return True


async def _get(spec: ContainerSpec, target: Mapping[str, Any]) -> bool:
    host, port = target.get("host") or LOCAL, port_of(spec, target)
    context = None
    if str(target.get("scheme") or "HTTP").upper() == "HTTPS":
        # As the kubelet: a probe asks whether somebody answers, not who.
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    reader, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        headers = {"Host": f"{host}:{port}", "User-Agent": "kube-probe/1.36", "Accept": "*/*"}
        headers |= {
            str(h["name"]): str(h.get("value", "")) for h in target.get("httpHeaders") or ()
        }
        path = str(target.get("path") or "/")
        lines = [f"GET {path} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]
        writer.write("\r\n".join([*lines, "Connection: close", "", ""]).encode())
        await writer.drain()
        status = (await reader.readline()).split()
        return len(status) >= 2 and 200 <= int(status[1]) < 400
    finally:
        writer.close()
