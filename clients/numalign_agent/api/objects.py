"""The objects of one list as an API server has them, kept up to date by the events of a watch.

Pure state: what is read and when is for `reflector` to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numalign_agent.api.errors import ApiError, Refused

Json = Mapping[str, Any]


class Objects:
    """Objects by namespace and name, and the version of the list that they are from."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], Json] = {}
        self.version = ""

    def current(self) -> tuple[Json, ...]:
        """All objects."""
        return tuple(self._objects.values())

    def replace(self, items: Iterable[Json], version: str) -> None:
        """These are all objects, as of `version`."""
        self._objects = {_key(item): item for item in items}
        self.version = version

    def apply(self, event: Json) -> bool:
        """Take in one event; whether an object changed.

        Raises Refused for an event that reports an error, and ApiError for one of no known type.
        """
        kind, obj = event["type"], event["object"]
        if kind == "ERROR":
            raise Refused(
                int(obj.get("code") or 500),
                str(obj.get("reason") or ""),
                str(obj.get("message") or ""),
            )
        version = str(obj.get("metadata", {}).get("resourceVersion") or "")
        match kind:
            case "ADDED" | "MODIFIED":
                self._objects[_key(obj)] = obj
            case "DELETED":
                self._objects.pop(_key(obj), None)
            case "BOOKMARK":
                pass
            case _:
                raise ApiError(f"event of unknown type {kind}")
        self.version = version or self.version
        return str(kind) != "BOOKMARK"


def _key(obj: Json) -> tuple[str, str]:
    metadata = obj.get("metadata") or {}
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
