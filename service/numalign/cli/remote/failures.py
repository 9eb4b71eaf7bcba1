"""What kubectl says where it fails, in words that name the way out. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Known:
    """What a failure is known by, and what to say of it; `{}` stands for kubectl's own words."""

    pattern: re.Pattern[str]
    said: str


_KNOWN = tuple(
    _Known(re.compile(pattern, re.IGNORECASE), said)
    for pattern, said in (
        (
            r"localhost:8080|no configuration has been provided|current-context is not set",
            (
                "no kubeconfig: kubectl has no cluster to speak to; KUBECONFIG names the file, "
                "or it is ~/.kube/config"
            ),
        ),
        (
            r"context .* does not exist",
            "{}: `kubectl config get-contexts` shows those there are",
        ),
        (
            r"error loading config|invalid configuration",
            "the kubeconfig cannot be used: {}",
        ),
        (
            r"forbidden",
            "not allowed: {} (--node needs: get and list pods, create pods/exec)",
        ),
        (
            r"unauthorized|must be logged in|getting credentials",
            "the API server does not accept the credentials of the kubeconfig: {}",
        ),
        (
            r"no such command .?relay",
            "numalign on the node is too old for --node: it has no command relay",
        ),
        (
            r"executable file not found|no such file or directory",
            "numalign cannot be run in the container: {}",
        ),
        (
            r"container not found|container .* is not running|is not valid for pod",
            "the container does not run: {}",
        ),
        (
            (
                r"refused|no such host|timeout|timed out|unable to connect|unreachable|EOF"
                r"|deadline|dial tcp|connection reset|lookup "
            ),
            "the API server cannot be reached: {}",
        ),
    )
)

_NOISE = re.compile(r"^(Defaulted container|command terminated with exit code|[EWI]\d{4} )")


def plain_failure(stderr: str) -> str:
    """One line for what kubectl wrote to standard error before it failed."""
    told = what_was_said(stderr) or stderr.split("\n")
    if not any(told):
        return "kubectl ended without a word"
    last = told[-1].removeprefix("error: ").removeprefix("Error: ")
    for known in _KNOWN:
        if known.pattern.search(stderr):
            return known.said.format(last.rstrip("."))
    return last


def what_was_said(stderr: str) -> list[str]:
    """The lines of the command in the pod, without those that kubectl adds."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return [line for line in lines if not _NOISE.match(line)]


def is_not_found(stderr: str) -> bool:
    """Whether the API server said that there is no such object."""
    return "(NotFound)" in stderr
