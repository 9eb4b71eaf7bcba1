"""Checks on probes and on what is done at the start and the end of a container."""

from __future__ import annotations

from typing import Any

from numalign.kube.violations import required
from numalign_agent.manifests.validation.words import (
    Problems,
    check_at_least,
    check_one_of,
    check_port,
    forbidden,
    wrong_number,
)

Document = dict[str, Any]

_SCHEMES = ("HTTP", "HTTPS")
_ACTIONS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "failureThreshold")


def check_probes(container: Document, path: str) -> Problems:
    """The probes and hooks of one container."""
    for name in _PROBES:
        if name in container:
            yield from _check_probe(container[name], f"{path}.{name}", name)
    for name in ("postStart", "preStop"):
        handler = container.get("lifecycle", {}).get(name)
        if handler is not None:
            yield from _check_action(handler, f"{path}.lifecycle.{name}")


def no_probes(container: Document, path: str) -> Problems:
    """A container that runs to its end before others start has neither probes nor hooks."""
    for name in (*_PROBES, "lifecycle"):
        if name in container:
            yield forbidden(f"{path}.{name}", "may not be set for init containers without restart")


def _check_probe(probe: Document, path: str, name: str) -> Problems:
    yield from _check_action(probe, path)
    for number in _NUMBERS:
        yield from check_at_least(f"{path}.{number}", probe.get(number), 0)
    threshold = probe.get("successThreshold", 1)
    yield from check_at_least(f"{path}.successThreshold", threshold, 0)
    if name != "readinessProbe" and threshold > 1:
        yield wrong_number(f"{path}.successThreshold", threshold, "must be 1")
    yield from check_at_least(
        f"{path}.terminationGracePeriodSeconds", probe.get("terminationGracePeriodSeconds"), 1
    )


def _check_action(handler: Document, path: str) -> Problems:
    actions = [name for name in _ACTIONS if name in handler]
    if not actions:
        yield required(path, "must specify a handler type")
    for name in actions[1:]:
        yield forbidden(f"{path}.{name}", "may not specify more than 1 handler type")
    for name in actions[:1]:
        action = handler[name]
        at = f"{path}.{name}"
        match name:
            case "exec":
                if not action.get("command"):
                    yield required(f"{at}.command")
            case "httpGet":
                yield from check_port(f"{at}.port", action.get("port", 0))
                yield from check_one_of(f"{at}.scheme", action.get("scheme"), _SCHEMES)
            case "tcpSocket" | "grpc":
                yield from check_port(f"{at}.port", action.get("port", 0))
            case _:
                yield from check_at_least(f"{at}.seconds", action.get("seconds", 0), 0)
