"""The pod of one container that a run asks for, from what the command line says. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numalign.model.quantity import Quantity, QuantitySyntaxError

CONTAINER = "run"
NAMESPACE = "default"

_NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")
_LONGEST_NAME = 40


class WrongAmount(ValueError):
    """An amount makes no sense; `option` is the resource, the text names the value."""

    def __init__(self, resource: str, message: str) -> None:
        super().__init__(message)
        self.resource = resource


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run asks for: amounts by resource, as quantities in text."""

    command: Sequence[str]
    amounts: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    namespace: str = NAMESPACE


def checked_amount(resource: str, text: str) -> str:
    """An amount as it was given. Raises WrongAmount unless it is a quantity above zero."""
    try:
        quantity = Quantity.parse(text)
    except QuantitySyntaxError as error:
        raise WrongAmount(resource, f'"{text}" is no quantity: {error}') from error
    if quantity.sign() <= 0:
        raise WrongAmount(resource, f'must be more than 0, not "{text}"')
    return text


def pod_document(asked: Asked, uid: str, pid: int) -> dict[str, Any]:
    """The pod, as JSON. Requests are the limits: with CPUs and memory it is Guaranteed."""
    amounts = dict(asked.amounts)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "uid": uid,
            "name": asked.name or f"run-{_word(asked.command[0])}-{pid}",
            "namespace": asked.namespace,
        },
        "spec": {
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": CONTAINER,
                    "image": "none",
                    "command": list(asked.command),
                    "resources": {"requests": amounts, "limits": amounts},
                }
            ],
        },
    }


def _word(command: str) -> str:
    name = command.rstrip("/").rpartition("/")[2].lower()
    return _NOT_IN_A_NAME.sub("-", name)[:_LONGEST_NAME].strip("-") or "command"
