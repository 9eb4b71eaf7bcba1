"""A network for one pod: a wire between it and this machine, and nothing beyond."""

from __future__ import annotations

import ctypes
import os
import shutil
import ssl
import subprocess
import sys
from asyncio import (
    Server,
    StreamReader,
    StreamWriter,
    gather,
    open_connection,
    start_server,
)
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import TypeVar

from tests.e2e.required import need

T = TypeVar("T")

_BLOCK = f"169.254.{1 + os.getpid() % 254}"
HOST, POD = f"{_BLOCK}.1", f"{_BLOCK}.2"
"""Both ends of the wire; who runs this at the same time has others."""

_NEW_NETWORK = 0x40000000
# A runtime runs this for `lo` and for the wire. The wire goes some time after its namespace; it is
# removed by name, since the next pod's is called the same.
_PLUGIN = f"""\
#!{sys.executable}
import json, os, subprocess, sys

def ip(*words, check=True):
    stderr = None if check else subprocess.DEVNULL
    subprocess.run(["ip", *words], check=check, stdout=subprocess.DEVNULL, stderr=stderr)

asked = json.load(sys.stdin)
version = asked.get("cniVersion", "1.0.0")
what = os.environ["CNI_COMMAND"]
if what == "VERSION":
    print(json.dumps({{"cniVersion": version, "supportedVersions": ["0.4.0", "1.0.0"]}}))
elif what == "ADD":
    namespace, name = os.path.basename(os.environ["CNI_NETNS"]), os.environ["CNI_IFNAME"]
    address = "127.0.0.1/8"
    if asked["type"] == "wire":
        address, own = "{POD}/30", asked["wire"]
        ip("link", "add", own, "type", "veth", "peer", "name", name, "netns", namespace)
        ip("addr", "add", "{HOST}/30", "dev", own)
        ip("link", "set", own, "up")
        ip("-n", namespace, "addr", "add", address, "dev", name)
    ip("-n", namespace, "link", "set", name, "up")
    interface = {{"name": name, "sandbox": os.environ["CNI_NETNS"]}}
    found = {{"interface": 0, "address": address}}
    made = {{"interfaces": [interface], "ips": [found], "dns": {{}}}}
    print(json.dumps({{"cniVersion": version, **made}}))
elif what == "DEL" and asked["type"] == "wire":
    ip("link", "del", asked["wire"], check=False)
"""


def write_network(directory: Path) -> None:
    """Write what a runtime needs for it below its own directory."""
    need(shutil.which("ip") is not None, "no ip to make a pod's network with")
    programs, settings = directory / "cni" / "bin", directory / "cni" / "conf"
    programs.mkdir(parents=True)
    settings.mkdir(parents=True)
    for name in ("loopback", "wire"):
        (programs / name).write_text(_PLUGIN, encoding="utf-8")
        (programs / name).chmod(0o755)
    plugin = f'{{"type": "wire", "wire": "nae{os.getpid()}"}}'
    text = f'{{"cniVersion": "1.0.0", "name": "wire", "plugins": [{plugin}]}}'
    (settings / "wire.conflist").write_text(text, encoding="utf-8")


def inside_of(pid: int, what: Callable[[], T]) -> T:
    """Do something in the network of a process; a socket that it makes stays there."""

    def entered() -> T:
        namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(namespace, _NEW_NETWORK) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(namespace)
        return what()

    # A thread of its own, which never comes back to the network of the others.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(entered).result()


def certificate(directory: Path) -> tuple[Path, Path]:
    """A certificate for this machine's end of the wire, and its key."""
    need(shutil.which("openssl") is not None, "no openssl to make a certificate with")
    chain, key = directory / "api.crt", directory / "api.key"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=kubernetes", "-addext", f"subjectAltName=IP:{HOST}"),
            *("-keyout", key, "-out", chain),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    return chain, key


async def behind_tls(chain: Path, key: Path, port: int) -> Server:
    """Listens at the wire, and passes on to a port of this machine what it decrypts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)

    async def passed_on(reader: StreamReader, writer: StreamWriter) -> None:
        inner_reader, inner_writer = await open_connection("127.0.0.1", port)
        async with AsyncExitStack() as ends:
            ends.enter_context(closing(writer))
            ends.enter_context(closing(inner_writer))
            await gather(_copy(reader, inner_writer), _copy(inner_reader, writer))

    return await start_server(passed_on, HOST, 0, ssl=context)


async def _copy(reader: StreamReader, writer: StreamWriter) -> None:
    """Until one side is gone; then the other one is told."""
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass  # a connection may be cut by either side, which the other one then sees
    finally:
        writer.close()
