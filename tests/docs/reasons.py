"""The reasons that stand in the code: what answers, events and container states can say.

Read from the syntax trees: each place where a reason is given to a verdict, a failure, an event or
a message is worked out in its own module. Where that cannot be done (it is handed on, or comes out
of a pod) nothing is found, since the place where it was made has been read as well.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
_ARGUMENT = {
    "AllocationFailure": 1,
    "Deferred": 0,
    "PredicateFailure": 0,
    "Rejection": 0,
    "deferred": 0,
    "event": 2,
    "rejected": 0,
    "_event": 2,
    "_failed": 1,
    "_warn": 1,
}
"""Which argument of a call is a reason."""

_WORD = re.compile(r"[A-Z]\w+")
_NAMED = ("REASON", "VICTIM_REASON", "_UNJUDGED")
"""Constants of modules that are reasons."""


def reasons_in(package: str) -> dict[str, set[str]]:
    """Every reason that a package makes, with the modules that make it."""
    found: dict[str, set[str]] = {}
    for name, tree in _modules(package):
        module = importlib.import_module(name)
        places = [*_expressions(tree), *(ast.Name(n) for n in _NAMED if hasattr(module, n))]
        for reason in {text for place in places for text in _texts(place, module)}:
            if _WORD.fullmatch(reason):
                found.setdefault(reason, set()).add(name)
    return found


def _modules(package: str) -> Iterator[tuple[str, ast.Module]]:
    """The modules that serve, not those that show or play what was recorded."""
    (root,) = (p for p in (ROOT / "service", ROOT / "clients") if (p / package).is_dir())
    for path in sorted((root / package).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if not {"cli", "replay"} & set(parts) and "_pb2" not in path.stem:
            name = ".".join(parts).removesuffix(".__init__")
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def _expressions(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else None
            called = node.func.id if isinstance(node.func, ast.Name) else called
            position = _ARGUMENT.get(called or "")
            if position is not None and len(node.args) > position:
                yield node.args[position]
            yield from (word.value for word in node.keywords if word.arg == "reason")
        elif isinstance(node, ast.Assign):
            (target, *_) = node.targets
            if isinstance(target, ast.Attribute) and target.attr == "reason":
                yield node.value
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "reason":
                    yield value


def _texts(place: ast.expr, module: ModuleType) -> Iterator[str]:
    """What a place can say; of a text with something to be filled in, what it begins with."""
    if isinstance(place, ast.IfExp):
        yield from _texts(place.body, module)
        yield from _texts(place.orelse, module)
    elif isinstance(place, ast.JoinedStr):
        begin = place.values[0]
        if isinstance(begin, ast.Constant):
            yield str(begin.value)
    else:
        try:
            value = eval(ast.unparse(place), dict(vars(module)))
        except (NameError, AttributeError, TypeError):
            return
        if isinstance(value, str):
            yield value
