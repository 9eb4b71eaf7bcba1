"""From the text of a YAML or JSON document to plain values.

Strict where the decoders are not: a key that stands twice in a mapping is an error, because
one of the two settings would be lost without a word.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import yaml

from numalign.document.problems import DocumentError

if TYPE_CHECKING:
    from yaml import SafeLoader as _SafeLoader
else:
    _SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


REFUSED_BY_YAML = (
    yaml.YAMLError,
    # A loader takes the word of an explicit tag, as in `!!bool 2` or `!!int ""`, and of what
    # looks like a date: these come from the functions that it then hands the text to.
    ValueError,
    LookupError,
    AttributeError,
    TypeError,
    RecursionError,
)
"""What reading a malformed YAML text ends with."""


def yaml_fault(error: BaseException) -> str:
    """What is wrong with a YAML text, in one line that begins with the place if it is known.

    `error` is one of REFUSED_BY_YAML.
    """
    if isinstance(error, yaml.reader.ReaderError):
        return f"position {error.position}: {error.reason}"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if not isinstance(error, yaml.MarkedYAMLError):
        return f"a value cannot be read: {' '.join(str(error).split())}"
    words = ", ".join(part for part in (error.context, error.problem) if part)
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return words
    return f"line {mark.line + 1}, column {mark.column + 1}: {words}"


def read_document(path: Path) -> object:
    """The document in the file at `path`; JSON if its name ends in `.json`, else YAML.

    Raises DocumentError naming the file where it cannot be read or decoded.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DocumentError(
            f"{path}: cannot be read: it is not UTF-8: {error.reason} at byte {error.start}"
        ) from error
    except OSError as error:
        raise DocumentError(f"{path}: cannot be read: {error.strerror}") from error
    return parse_document(text, str(path))


def parse_document(text: str, name: str) -> object:
    """The one document in `text`; None for an empty one. `name` is what errors call it.

    Raises DocumentError.
    """
    return _parse_json(text, name) if name.endswith(".json") else _parse_yaml(text, name)


def _parse_json(text: str, name: str) -> object:
    try:
        document: object = json.loads(
            text, object_pairs_hook=_unique_pairs, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"{name}: {error}") from error
    return document


def _unique_pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in mapping if keys.count(key) > 1)
        raise ValueError(f'the key "{twice}" stands twice in one mapping')
    return mapping


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")


def _parse_yaml(text: str, name: str) -> object:
    try:
        loader = _StrictLoader(text)
        try:
            document: object = loader.get_single_data()
        finally:
            loader.dispose()
    except REFUSED_BY_YAML as error:
        raise DocumentError(f"{name}: {yaml_fault(error)}") from error
    return document


class _StrictLoader(_SafeLoader):
    """A safe loader that refuses a key that stands twice in one mapping."""

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Hashable, object]:
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f'the key "{key.value}" stands twice', key.start_mark
                    )
                seen.add((key.tag, key.value))
        mapping: dict[Hashable, object] = super().construct_mapping(node, deep=deep)
        return mapping
