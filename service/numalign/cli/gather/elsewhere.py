"""A bundle of another node: gathered in its pod, where the machine and the pages are, and sent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO

from numalign.cli.gather.bundle import open_bundle
from numalign.cli.remote.failures import plain_failure, what_was_said
from numalign.cli.remote.kubectl import Kubectl
from numalign.cli.remote.target import RemoteNode
from numalign.errors import Unavailable


async def gather_there(
    remote: RemoteNode, logs: Sequence[Path], seconds: float, to: Path
) -> tuple[int, list[str]]:
    """Write the node's bundle to a file: the exit code there, and what was said there.

    Raises NotFound and Unavailable; then there is no file.
    """
    kubectl = Kubectl(remote.context, seconds)
    pod = await kubectl.pod_on(remote)
    command = ["numalign", "gather", "--to", "-", "--timeout", f"{seconds:g}", *pod.place]
    for log in logs:
        command += ["--log", str(log)]
    part = to.with_name(f"{to.name}.part")
    try:
        with open_bundle(part) as file:
            code, errors = await kubectl.run(pod, command, file)
            size = _size(file)
        if not size:
            raise Unavailable(f"{pod}: {plain_failure(errors)}")
        part.replace(to)
    finally:
        part.unlink(missing_ok=True)
    return code, what_was_said(errors)


def _size(file: IO[bytes]) -> int:
    return file.seek(0, 2)
