"""From the text of manifests to plain objects, with the scalars that Kubernetes reads.

Separate from the reading of configuration files because Kubernetes' rules differ: several
documents in a file, a repeated key is allowed, and keys that are no text become text (CFG-8).
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import yaml

from numalign.document.text import REFUSED_BY_YAML, yaml_fault
from numalign.errors import FieldViolation, InvalidInput
from numalign.kube.violations import too_long

if TYPE_CHECKING:
    from yaml import SafeLoader as _SafeLoader
else:
    _SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MAX_MANIFEST_BYTES = 10 * 1024 * 1024 - 1
"""The largest text that is looked at (CFG-8)."""

_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_BOOLEAN = "tag:yaml.org,2002:bool"
_INTEGER = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"


class _Loader(_SafeLoader):
    """YAML 1.1 as Kubernetes reads it: `n` is false, times are text, `12:30` is no number."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the base class reads it from the class
        first: [pair for pair in pairs if pair[0] not in {_TIMESTAMP, _INTEGER, _FLOAT}]
        for first, pairs in _SafeLoader.yaml_implicit_resolvers.items()
    }

    bool_values = {**_SafeLoader.bool_values, "y": True, "n": False}  # noqa: RUF012 - as above

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """The mapping, its keys as text."""
        # Pair by pair, since 1 and true would be one key before they are text.
        self.flatten_mapping(node)
        return {
            self._key_text(key): self.construct_object(value, deep=deep)
            for key, value in node.value
        }

    def _key_text(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(
                None, None, "a key must be a single value", node.start_mark
            )
        key = self.construct_object(node)
        if key is None or isinstance(key, bool):
            return {None: "null", True: "true", False: "false"}[key]
        return str(key)


_Loader.add_implicit_resolver(_BOOLEAN, re.compile(r"[yYnN]\Z"), list("yYnN"))
_Loader.add_implicit_resolver(
    _INTEGER,
    re.compile(r"[-+]?(?:0b[01_]+|0o[0-7_]+|0[0-7_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*)\Z", re.ASCII),
    list("-+0123456789"),
)
_Loader.add_implicit_resolver(
    _FLOAT,
    re.compile(
        r"(?:[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z",
        re.ASCII,
    ),
    list("-+0123456789."),
)


def documents_of(text: str) -> list[object]:
    """The documents in `text`: one JSON object if it begins with `{`, else YAML documents.

    An empty document is None. Raises InvalidInput naming the document that cannot be decoded.
    """
    _check_length(text)
    documents: list[object] = []
    try:
        if text.lstrip().startswith("{"):
            documents.append(json.loads(text))
        else:
            documents.extend(yaml.load_all(text, _Loader))
    except REFUSED_BY_YAML as error:
        place = f"documents[{len(documents)}]"
        raise _undecoded(place, error) from error
    return documents


def first_document_of(text: str) -> object:
    """The first document in `text`; what follows it is not looked at. None for an empty one.

    Raises InvalidInput if it cannot be decoded.
    """
    _check_length(text)
    try:
        if text.lstrip().startswith("{"):
            return json.loads(text)
        return next(iter(yaml.load_all(text, _Loader)), None)
    except REFUSED_BY_YAML as error:
        raise _undecoded("document", error) from error


def _undecoded(place: str, error: BaseException) -> InvalidInput:
    # JSON names its place at the end, in the same words.
    fault = str(error) if isinstance(error, json.JSONDecodeError) else yaml_fault(error)
    return InvalidInput(FieldViolation(place, f"cannot be decoded: {fault}"))


def _check_length(text: str) -> None:
    if len(text.encode("utf-8", "surrogatepass")) > MAX_MANIFEST_BYTES:
        raise InvalidInput(too_long("documents", MAX_MANIFEST_BYTES))
