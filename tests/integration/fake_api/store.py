"""The objects of a fake API server: versions, UIDs, history, selectors, patches.

Separate from HTTP, so that tests change objects as somebody else would.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

Json = dict[str, Any]

# Lists that a strategic merge patch merges by a key of their items; others it replaces.
_MERGE_KEYS = {"conditions": "type", "addresses": "type", "podIPs": "ip"}


@dataclass(frozen=True, slots=True)
class Change:
    """One event of the history: the object before and after, None where there is none."""

    version: int
    collection: str
    before: Json | None
    after: Json | None


class Problem(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, reason: str, message: str = "") -> None:
        super().__init__(message or reason)
        self.status = status
        self.reason = reason


@dataclass(slots=True)
class Store:
    """Collections by name (`pods`, `nodes`, ...), each by namespace and name."""

    version: int = 100
    oldest: int = 0
    objects: dict[str, dict[tuple[str, str], Json]] = field(default_factory=dict)
    history: list[Change] = field(default_factory=list)
    changed: list[Callable[[], None]] = field(default_factory=list)

    def all(self, collection: str, selector: str = "") -> list[Json]:
        return [
            copy.deepcopy(obj)
            for obj in self.objects.get(collection, {}).values()
            if matches(obj, selector)
        ]

    def get(self, collection: str, namespace: str, name: str) -> Json:
        try:
            return copy.deepcopy(self.objects[collection][namespace, name])
        except KeyError:
            raise Problem(404, "NotFound", f'{collection} "{name}" not found') from None

    def create(self, collection: str, namespace: str, obj: Json) -> Json:
        obj = copy.deepcopy(obj)
        metadata = obj.setdefault("metadata", {})
        if namespace:
            metadata["namespace"] = namespace
        name = metadata.get("name") or f"{metadata['generateName']}{uuid4().hex[:5]}"
        metadata["name"] = name
        if (namespace, name) in self.objects.get(collection, {}):
            raise Problem(409, "AlreadyExists", f'{collection} "{name}" already exists')
        metadata["uid"] = str(uuid4())
        metadata["creationTimestamp"] = now()
        return self._put(collection, namespace, name, None, obj)

    def update(self, collection: str, namespace: str, name: str, obj: Json) -> Json:
        before = self.get(collection, namespace, name)
        wanted = obj.get("metadata", {}).get("resourceVersion")
        if wanted and wanted != before["metadata"]["resourceVersion"]:
            raise Problem(409, "Conflict", "the object has been modified")
        return self._put(collection, namespace, name, before, copy.deepcopy(obj))

    def patch(
        self, collection: str, namespace: str, name: str, patch: Json, *, part: str = ""
    ) -> Json:
        before = self.get(collection, namespace, name)
        uid = patch.get("metadata", {}).get("uid")
        if uid and uid != before["metadata"]["uid"]:
            raise Problem(409, "Conflict", "the UID in the precondition does not match")
        after = merged(before, {part: patch.get(part, {})} if part else patch)
        if after == before:
            return before
        return self._put(collection, namespace, name, before, after)

    def json_patch(self, collection: str, namespace: str, name: str, patch: list[Json]) -> Json:
        """All operations, or none where one does not apply."""
        before = self.get(collection, namespace, name)
        after = operated(before, patch)
        if after == before:
            return before
        return self._put(collection, namespace, name, before, after)

    def delete(self, collection: str, namespace: str, name: str, options: Json) -> Json:
        before = self.get(collection, namespace, name)
        uid = options.get("preconditions", {}).get("uid")
        if uid and uid != before["metadata"]["uid"]:
            raise Problem(409, "Conflict", "the UID in the precondition does not match")
        grace = options.get("gracePeriodSeconds", 30 if collection == "pods" else 0)
        if grace > 0:
            after = copy.deepcopy(before)
            after["metadata"] |= {"deletionTimestamp": now(), "deletionGracePeriodSeconds": grace}
            return self._put(collection, namespace, name, before, after)
        self.version += 1
        del self.objects[collection][namespace, name]
        self._tell(Change(self.version, collection, before, None))
        return before

    def forget_history(self) -> None:
        """What came before now is too old to be watched from."""
        self.oldest = self.version
        self.history.clear()

    def _put(
        self, collection: str, namespace: str, name: str, before: Json | None, after: Json
    ) -> Json:
        self.version += 1
        after["metadata"]["resourceVersion"] = str(self.version)
        self.objects.setdefault(collection, {})[namespace, name] = after
        self._tell(Change(self.version, collection, before, copy.deepcopy(after)))
        return copy.deepcopy(after)

    def _tell(self, change: Change) -> None:
        self.history.append(change)
        for tell in self.changed:
            tell()


def event_of(change: Change, selector: str) -> Json | None:
    """What a watch with a selector sees of a change."""
    was = change.before is not None and matches(change.before, selector)
    is_now = change.after is not None and matches(change.after, selector)
    if is_now:
        return {"type": "MODIFIED" if was else "ADDED", "object": change.after}
    if not was:
        return None
    gone = copy.deepcopy(change.after or change.before) or {}
    gone["metadata"]["resourceVersion"] = str(change.version)
    return {"type": "DELETED", "object": gone}


def matches(obj: Json, selector: str) -> bool:
    """Whether an object has the values that a field selector names."""
    for term in filter(None, selector.split(",")):
        path, _, wanted = term.partition("=")
        value: Any = obj
        for key in path.split("."):
            value = value.get(key, "") if isinstance(value, dict) else ""
        if value != wanted:
            return False
    return True


def has(obj: Json, labels: str) -> bool:
    """Whether an object has the labels that a label selector names by `name=value`."""
    own = obj["metadata"].get("labels", {})
    terms = [term.partition("=") for term in labels.split(",") if term]
    return all(own.get(name) == value for name, _, value in terms)


def operated(old: Json, patch: Iterable[Json]) -> Json:
    """A JSON patch applied; of its operations those that are asked for here."""
    new = copy.deepcopy(old)
    for operation in patch:
        *way, last = [key.replace("~1", "/") for key in operation["path"][1:].split("/")]
        try:
            at: Any = new
            for key in way:
                at = at[int(key)] if isinstance(at, list) else at[key]
            place: Any = int(last) if isinstance(at, list) and last != "-" else last
            match operation["op"]:
                case "test":
                    if at[place] != operation["value"]:
                        raise Problem(422, "Invalid", f"{operation['path']} is another")
                case "remove":
                    del at[place]
                case "add" if isinstance(at, list):
                    at.insert(len(at) if place == "-" else place, operation["value"])
                case "add":
                    at[place] = operation["value"]
                case unknown:
                    raise Problem(400, "BadRequest", unknown)
        except (KeyError, IndexError, ValueError, TypeError):
            raise Problem(422, "Invalid", f"{operation['path']} is not there") from None
    return new


def merged(old: Any, patch: Any, key: str = "") -> Any:
    """A strategic merge patch applied: null removes, some lists are merged by a key."""
    if isinstance(old, dict) and isinstance(patch, dict):
        names = [*old, *(name for name in patch if name not in old)]
        return {
            name: merged(old.get(name), patch[name], name) if name in patch else old[name]
            for name in names
            if patch.get(name, "") is not None
        }
    by = _MERGE_KEYS.get(key)
    if by is None or not isinstance(old, list):
        return copy.deepcopy(patch)
    return _merged_list(old, patch, by)


def _merged_list(old: Iterable[Json], patch: Iterable[Json], by: str) -> list[Json]:
    items = {item[by]: item for item in old}
    for item in patch:
        if item.get("$patch") == "delete":
            items.pop(item[by], None)
        elif "$patch" not in item and by in item:
            items[item[by]] = merged(items.get(item[by], {}), item)
    return list(items.values())


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
