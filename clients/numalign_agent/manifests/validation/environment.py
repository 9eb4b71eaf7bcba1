"""Checks on the environment of a container."""

from __future__ import annotations

import re
from typing import Any

from numalign.kube.violations import invalid, required
from numalign_agent.manifests.validation.words import Problems, forbidden

Document = dict[str, Any]

_NAME = re.compile(r"[ -<>-~]+\Z")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def check_environment(container: Document, path: str) -> Problems:
    """Names and sources of `env` and `envFrom`."""
    for index, variable in enumerate(container.get("env", ())):
        yield from _check_variable(variable, f"{path}.env[{index}]")
    for index, source in enumerate(container.get("envFrom", ())):
        at = f"{path}.envFrom[{index}]"
        given = [name for name in ("configMapRef", "secretRef") if name in source]
        if not given:
            yield required(at, "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            yield forbidden(at, "may not have more than one field specified at a time")


def _check_variable(variable: Document, path: str) -> Problems:
    name = variable.get("name", "")
    if not name:
        yield required(f"{path}.name")
    elif not _NAME.match(name):
        detail = "must consist only of printable ASCII characters other than '='"
        yield invalid(f"{path}.name", name, detail)
    if "valueFrom" not in variable:
        return
    sources = [source for source in _SOURCES if source in variable["valueFrom"]]
    at = f"{path}.valueFrom"
    if len(sources) != 1:
        words = ", ".join(f"`{source}`" for source in _SOURCES)
        yield invalid(at, "", f"must specify exactly one of: {words}")
    elif variable.get("value"):
        yield invalid(at, "", "may not be specified when `value` is not empty")
